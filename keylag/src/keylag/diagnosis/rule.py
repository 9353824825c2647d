"""The shape of a rule: one cause of slow authentication.

A rule's `judge` looks at a case and returns a `Suspicion`, with what the cause costs,
or a sentence that says why it is not the cause.  It raises MissingSourceError if it
cannot know.  The ranking decides which suspicions are findings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.configuration import Option
from keylag.diagnosis.facts import Kind

if TYPE_CHECKING:
    from keylag.services.base import StackOptions

MATTERS: Final = 1 / 6
"""Smallest share of a call that a cause costs.

A cause with this share has made the call a fifth slower: the least that an operator
sees in a p50, and what a planted fault has to reach.
"""


@dataclass(frozen=True)
class Saving:
    """Seconds that each call of a kind would save without the cause."""

    low: float
    mid: float
    high: float

    @classmethod
    def about(cls, seconds: float, low: float = 0.5, high: float = 1.2) -> "Saving":
        """Return a saving with bounds as shares of its middle."""
        return cls(low * seconds, seconds, high * seconds)


@dataclass(frozen=True)
class PerCall:
    """That a number is the mean of a kind of calls, in some phases and operations."""

    kind: Kind
    phases: Sequence[str] = ()
    operations: Sequence[str] = ()


@dataclass(frozen=True)
class Evidence:
    """One number that speaks for a cause."""

    text: str
    value: float
    unit: str = ""
    measurement: str = ""
    """Name of the measurement that it comes from."""
    baseline: float | None = None
    per_call: PerCall | None = None
    """The calls that the measurement is divided by, if it is."""


@dataclass(frozen=True)
class Suspicion:
    """What a cause costs now, and the evidence."""

    savings: Mapping[Kind, Saving]
    evidence: Sequence[Evidence]
    worker_seconds: float | None = None
    """Workers that the cause keeps busy, if that is more than the calls' savings."""
    cause: str = ""
    """A sentence that says more than the rule's own, such as the layer to blame."""


@dataclass(frozen=True)
class Fix:
    """One change: where, the lines, and what they risk."""

    file: str
    line: str
    risk: str
    option: Option | None = None
    """The option that the line sets, so that its present value can be shown."""


Judge = Callable[[Case], Suspicion | str]


@dataclass(frozen=True)
class Rule:
    """One cause, as data; `judge` computes what it costs."""

    id: str
    name: str
    cause: str
    """One sentence, as a finding's headline."""
    judge: Judge
    asks: Sequence[str]
    """Names of the measurements that the judge looks at, besides the calls' own."""
    fixes: Sequence[Fix]
    gain: str
    """How the gain is computed, in one sentence."""
    threshold: str
    """Why the rule's own thresholds are what they are."""
    panel: str
    """The panel that shows it, as `dashboard: title`."""
    explains: Sequence[str] = ()
    """Ids of rules that are only symptoms if this one is found."""
    fixed_options: "Callable[[StackOptions], StackOptions] | None" = None
    """Options of `keylag up` with the fix; None if it has no option for it."""

    @property
    def board(self) -> str:
        """Return the name of the dashboard that shows it."""
        return self.panel.partition(":")[0]
