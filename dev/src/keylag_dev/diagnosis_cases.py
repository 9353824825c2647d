"""The cases that `make test-diagnosis` plants: single faults, pairs, decoys, none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from keylag.faults.model import SERVICE, Fault
from keylag.faults.registry import FAULTS
from keylag.services import EXTRA_SERVICES
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
    ("D5", "D1"),
)
"""Faults that are planted together."""
ONLY_IN_PAIRS: Final = ("D5",)
"""With a near database on two CPUs, calls mostly wait for a CPU, whatever the pool."""
MIXED: Final = ("token-mixed",)
WITH_SERVICE: Final = (*MIXED, "service-call")
VALIDATIONS: Final[Mapping[str, tuple[str, ...]]] = {"W3": ("token-validate",)}
"""Faults that log-ins would hide: threads log in on several CPUs, because bcrypt
releases the GIL."""
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
"""Strengths at which no rule was tuned, weaker and stronger than the default."""
WINDOWS_PER_LOAD: Final = 4
"""Windows of a healthy stack under one load; log-outs add to the events of the next."""


@dataclass(frozen=True)
class Planted:
    """One case: a name, the faults in it with their strengths, and the right answer."""

    name: str
    faults: Mapping[str, float | None]
    expected: tuple[str, ...]
    clients: int = 2
    plans: tuple[str, ...] = MIXED
    """The plans of its load, each with so many clients."""
    windows: int = 1
    """How many windows are diagnosed, one after the other."""
    extras: tuple[str, ...] = ()
    """Extra services that its stack has beside those that its faults need."""

    def window_name(self, number: int) -> str:
        """Return the name of a window, which counts from 1."""
        return self.name if self.windows == 1 else f"{self.name}, window {number}"

    @property
    def stack_extras(self) -> tuple[str, ...]:
        """The extra services of its stack."""
        needed = (name for key in self.faults for name in _needed_extras(FAULTS[key]))
        return tuple(sorted({*OPTIONS.extras, *self.extras, *needed}))


def _needed_extras(fault: Fault) -> Iterator[str]:
    """Yield the extra services that a fault needs and most stacks lack."""
    for need in fault.needs:
        if not need.met(OPTIONS):
            for name in EXTRA_SERVICES:
                if need.met(replace(OPTIONS, extras=(name,))):
                    yield name


def single(fault: Fault, strength: float | None = None) -> Planted:
    """Return the case of a fault, as strong as it is by default."""
    usual = WITH_SERVICE if SERVICE in fault.slows else MIXED
    plans = VALIDATIONS.get(fault.key, usual)
    name = fault.key if strength is None else f"{fault.key} at {strength:g}"
    return Planted(name, {fault.key: strength}, (fault.id,), fault.clients, plans)


def single_faults() -> Iterator[Planted]:
    """Yield the cases of the faults that slow calls alone."""
    return (single(one) for one in FAULTS.values() if one.key not in ONLY_IN_PAIRS)


def other_strengths() -> Iterator[Planted]:
    """Yield the cases of faults at strengths for which no rule was tuned."""
    return (single(FAULTS[key], value) for key, value in OTHER_STRENGTHS.items())


def pairs() -> Iterator[Planted]:
    """Yield the cases of two faults at the same time."""
    for keys in PAIRS:
        clients = max(FAULTS[key].clients for key in keys)
        expected = tuple(FAULTS[key].id for key in keys)
        yield Planted("+".join(keys), dict.fromkeys(keys), expected, clients)


def decoys() -> Iterator[Planted]:
    """Yield the cases of faults that are too weak to matter."""
    for key, strength in DECOYS.items():
        yield Planted(f"decoy {key}", {key: strength}, ())


def healthy(rounds: int) -> Iterator[Planted]:
    """Yield the cases without a fault: at three loads, at those of faults, with extras.

    A service that finds all tokens in its cache answers so fast that it takes the CPUs
    from Keystone, so that load has none.
    """
    for round_ in range(1, rounds + 1):
        for clients in HEALTHY_CLIENTS:
            name = f"healthy {round_}, {clients} clients"
            yield Planted(name, {}, (), clients, windows=WINDOWS_PER_LOAD)
    known = {(clients, MIXED) for clients in HEALTHY_CLIENTS}
    loads = {(one.clients, one.plans) for one in single_faults()} - known
    for clients, plans in sorted(one for one in loads if one[1] != WITH_SERVICE):
        name = f"healthy, {clients} clients, {' and '.join(plans)}"
        yield Planted(name, {}, (), clients, plans)
    extras = {one.stack_extras for one in single_faults()} - {OPTIONS.extras}
    for names in sorted(extras):
        added = " and ".join(name for name in names if name not in OPTIONS.extras)
        yield Planted(f"healthy, {added}", {}, (), extras=names)
