"""What a fault is: a cause, the changes that plant it, and what it needs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from keylag.errors import KeylagError, WrongUsageError
from keylag.services.base import StackOptions

if TYPE_CHECKING:
    from keylag.faults.site import Site

POST: Final = "POST"
GET: Final = "GET"
DELETE: Final = "DELETE"
SERVICE: Final = "service"
"""Calls that a fault may slow: token calls, and the call of a service."""


class FaultError(KeylagError):
    """A fault could not be planted or taken back."""


class FaultUsageError(WrongUsageError):
    """A fault is unknown, needs another stack, or conflicts with a planted one."""


class Change(Protocol):
    """One change of a stack; a dataclass whose fields JSON can store."""

    def apply(self, site: "Site") -> None:
        """Make the change."""

    def undo(self, site: "Site") -> None:
        """Take the change back; also if it was made in part, or taken back before."""


@dataclass(frozen=True)
class Strength:
    """How strong a fault is."""

    default: float
    unit: str
    """Completes the sentence "the strength is 5 ...": `ms in each direction`."""
    lowest: float = 0.0
    highest: float = 1e6

    def check(self, value: float) -> float:
        """Return the value; raises FaultUsageError if it is out of range."""
        if self == FIXED and value != self.default:
            message = "This fault has no strength."
            raise FaultUsageError(message)
        if not self.lowest <= value <= self.highest:
            message = (
                f"A strength of {value:g} is out of range: {self.lowest:g} to "
                f"{self.highest:g} {self.unit}."
            )
            raise FaultUsageError(message)
        return value


FIXED: Final = Strength(1, "", 1, 1)
"""The strength of a fault that is there or not."""


@dataclass(frozen=True)
class Need:
    """Options of a stack without which a fault slows nothing."""

    added_to: Callable[[StackOptions], StackOptions]
    """Returns options with what is missing, and those that have it as they are."""
    advice: str
    """How to start such a stack; a sentence."""

    def met(self, options: StackOptions) -> bool:
        """Return whether a stack with these options has it."""
        return self.added_to(options) == options


@dataclass(frozen=True)
class Fault:
    """A cause of slow token calls that can be planted in a stack."""

    id: str
    """Id of the rule that finds the cause: C4."""
    name: str
    """Name of that rule: cache-far."""
    summary: str
    """What it does to the stack; a sentence."""
    mechanism: str
    """How it does that; a sentence."""
    slows: tuple[str, ...]
    """The calls that become slower: POST, GET, DELETE or SERVICE."""
    uses: frozenset[str]
    """Parts of the stack that no other fault may change at the same time."""
    changes: "Callable[[Site, float], Iterable[Change]]"
    """The changes in their order; each is made before the next one is computed."""
    strength: Strength = FIXED
    variant: str = ""
    needs: tuple[Need, ...] = ()
    beside: Mapping[str, float] = field(default_factory=dict)
    """Strengths by key of faults without which it slows nothing."""
    clients: int = 2
    """Number of clients whose calls show the impact."""

    @property
    def key(self) -> str:
        """Id and variant: `C2` or `C2:stopped`."""
        return f"{self.id}:{self.variant}" if self.variant else self.id

    @property
    def title(self) -> str:
        """Key and name: `C2:stopped cache-server-hung`."""
        return f"{self.key} {self.name}"


def uses(*parts: str) -> frozenset[str]:
    """Return the parts of a stack that a fault uses."""
    return frozenset(parts)
