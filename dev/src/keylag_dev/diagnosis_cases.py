"""The cases that `make test-diagnosis` plants: single faults, pairs, decoys, none."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Final

from keylag.faults.model import SERVICE, Fault
from keylag.faults.registry import FAULTS
from keylag.services.base import StackOptions

OPTIONS: Final = StackOptions(cache="memcache_pool", extras=("service",))
"""The stack of most cases; others need more extra services."""

HEALTHY_CLIENTS: Final = (1, 2, 4)
"""Clients of a healthy stack."""
PAIRS: Final = (
    ("C4", "H3"),
    ("C2", "H1"),
    ("C8", "D1"),
    ("D3", "W2"),
    ("R1", "D1"),
    ("D2:cpu", "H3"),
    ("C4", "D4"),
    ("A2", "H1"),
)
"""Faults that are planted together."""
LEAST_WINDOW_SECONDS: Final[Mapping[str, float]] = {"C8+D1": 90}
"""Of cases whose calls take so long that few end sooner."""
MIXED: Final = ("token-mixed",)
WITH_SERVICE: Final = (*MIXED, "service-call")
RATES: Final[Mapping[str, float]] = {"service-call": 10}
"""Requests per second at most, by plan: a service that finds all tokens in its cache
answers so fast that it would take the CPUs from Keystone."""
VALIDATIONS: Final[Mapping[str, tuple[str, ...]]] = {"W3": ("token-validate",)}
"""Faults that log-ins would hide: threads log in on several CPUs, because bcrypt
releases the GIL."""
USERS: Final[Mapping[str, int]] = {"C9": 1000}
"""Faults that few users would hide: soon each cache has all that they need."""
DECOYS: Final[Mapping[str, float]] = {
    "C8": 0.02,
    "H2": 0.05,
    "H3": 0.02,
    "R1": 3,
    "R3": 0.02,
    "A2": 30,
    "T1": 5,
}
"""Faults whose strength costs a call next to nothing: they look like a cause.

A relay is none, however short: it costs a call as much as a real distance."""
OTHER_STRENGTHS: Final[Mapping[str, float]] = {
    "C3": 5,
    "C4": 12,
    "C5": 12_000,
    "C6": 40,
    "C8": 20,
    "H1": 14,
    "H2": 8,
    "H3": 8,
    "A2": 3000,
    "R1": 10_000,
    "R3": 8,
    "D1": 20,
    "D2:cpu": 90,
    "D2:disk": 35,
}
"""Strengths at which no rule was tuned.

Only D2:disk is weaker than by default, as it allows more writes.  C6 is as strong: all
connections are taken, whatever their limit.  The others are stronger.
"""
WINDOWS_PER_LOAD: Final = 4
"""Windows of a healthy stack under one load; log-outs add to the events of the next."""


@dataclass(frozen=True)
class Load:
    """The calls of a case, and the stack that gets them."""

    clients: int = 2
    plans: tuple[str, ...] = MIXED
    """The plans, each with so many clients."""
    options: StackOptions = OPTIONS
    beside: Mapping[str, float] = field(default_factory=dict)
    """Strengths by key of faults that are no answer: the stack always has them."""

    def __str__(self) -> str:
        """Return what differs from most loads: `16 clients, threads 16, D1 at 1`."""
        usual = asdict(OPTIONS)
        changed = {
            name: value
            for name, value in asdict(self.options).items()
            if value != usual[name]
        }
        added = [one for one in changed.pop("extras", ()) if one not in OPTIONS.extras]
        return ", ".join(
            (
                f"{self.clients} clients",
                *(plan for plan in self.plans if self.plans != MIXED),
                *added,
                *(f"{name} {value}" for name, value in changed.items()),
                *(f"{key} at {strength:g}" for key, strength in self.beside.items()),
            )
        )


@dataclass(frozen=True)
class ScoredCase:
    """Faults to plant, their load, and the causes that the diagnosis must name."""

    name: str
    faults: Mapping[str, float | None]
    expected: tuple[str, ...]
    load: Load = Load()
    windows: int = 1
    """How many windows are diagnosed, one after the other."""

    @property
    def least_window_seconds(self) -> float:
        """How long a window must be."""
        return LEAST_WINDOW_SECONDS.get(self.name, 0)

    def window_name(self, number: int) -> str:
        """Return the name of a window, which counts from 1."""
        return self.name if self.windows == 1 else f"{self.name}, window {number}"


def load_of(*faults: Fault, plans: tuple[str, ...] = MIXED) -> Load:
    """Return the load that shows faults, and the stack that they need."""
    needs = (need for fault in faults for need in fault.needs)
    options = reduce(lambda options, need: need.added_to(options), needs, OPTIONS)
    users = max(USERS.get(fault.key, options.users) for fault in faults)
    planted = {fault.key for fault in faults}
    return Load(
        clients=max(fault.clients for fault in faults),
        plans=plans,
        options=replace(options, users=users),
        beside={
            key: strength
            for fault in faults
            for key, strength in fault.beside.items()
            if key not in planted
        },
    )


def single(fault: Fault, strength: float | None = None) -> ScoredCase:
    """Return the case of a fault, as strong as it is by default."""
    usual = WITH_SERVICE if SERVICE in fault.slows else MIXED
    load = load_of(fault, plans=VALIDATIONS.get(fault.key, usual))
    name = fault.key if strength is None else f"{fault.key} at {strength:g}"
    return ScoredCase(name, {fault.key: strength}, (fault.id,), load)


def single_faults() -> Iterator[ScoredCase]:
    """Yield the cases of all faults."""
    return (single(one) for one in FAULTS.values())


def other_strengths() -> Iterator[ScoredCase]:
    """Yield the cases of faults at strengths for which no rule was tuned."""
    return (single(FAULTS[key], value) for key, value in OTHER_STRENGTHS.items())


def pairs() -> Iterator[ScoredCase]:
    """Yield the cases of two faults at the same time."""
    for keys in PAIRS:
        faults = [FAULTS[key] for key in keys]
        expected = tuple(one.id for one in faults)
        load = load_of(*faults)
        yield ScoredCase("+".join(keys), dict.fromkeys(keys), expected, load)


def decoys() -> Iterator[ScoredCase]:
    """Yield the cases of faults that are too weak to matter."""
    for key, strength in DECOYS.items():
        yield ScoredCase(f"decoy {key}", {key: strength}, ())


def healthy(rounds: int) -> Iterator[ScoredCase]:
    """Yield the cases without a fault: at three loads, and at those of faults."""
    usual = [Load(clients) for clients in HEALTHY_CLIENTS]
    for round_ in range(1, rounds + 1):
        for load in usual:
            name = f"healthy {round_}, {load}"
            yield ScoredCase(name, {}, (), load, windows=WINDOWS_PER_LOAD)
    others = {
        str(one.load): one.load for one in single_faults() if one.load not in usual
    }
    for name, load in others.items():
        beside = tuple(FAULTS[key].id for key in load.beside)
        kind = "reference" if beside else "healthy"
        yield ScoredCase(f"{kind}, {name}", {}, beside, load)
