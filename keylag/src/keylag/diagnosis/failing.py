"""Calls that end with an error of Keystone (5xx), whatever the cause."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from keylag.diagnosis.facts import Facts, Kind, ratio

FAILING_SHARE: Final = 0.05
"""Smallest share of a kind of calls: then their p95 is a failed call."""


@dataclass(frozen=True)
class Failing:
    """A kind of calls of which many fail."""

    kind: Kind
    per_second: float
    """Failed calls."""
    share: float
    """Of all calls of this kind."""
    seconds: float
    """Mean time until they fail."""
    refused_commits_per_second: float
    """Of all calls: a Galera cluster refuses a commit if another node wrote the row."""


def find_failing(facts: Facts) -> Iterator[Failing]:
    """Yield the kinds of calls of which many fail."""
    known = facts.has("refused_commits")
    refused = facts.number("refused_commits") if known else 0.0
    for calls in facts.failed:
        alike = (one.per_second for one in facts.calls if one.kind == calls.kind)
        share = ratio(calls.per_second, sum(alike))
        if share >= FAILING_SHARE:
            yield Failing(calls.kind, calls.per_second, share, calls.seconds, refused)
