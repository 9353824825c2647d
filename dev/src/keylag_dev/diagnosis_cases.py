"""The cases that `make test-diagnosis` plants: single faults, pairs, decoys, none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from keylag.faults.model import SERVICE, Fault
from keylag.faults.registry import FAULTS

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


@dataclass(frozen=True)
class Planted:
    """One case: a name, the faults in it with their strengths, and the right answer."""

    name: str
    faults: Mapping[str, float | None]
    expected: tuple[str, ...]
    clients: int = 2
    plans: tuple[str, ...] = MIXED
    """The plans of its load, each with so many clients."""


def single(fault: Fault) -> Planted:
    """Return the case of a fault, as strong as it is by default."""
    usual = WITH_SERVICE if SERVICE in fault.slows else MIXED
    plans = VALIDATIONS.get(fault.key, usual)
    return Planted(fault.key, {fault.key: None}, (fault.id,), fault.clients, plans)


def single_faults() -> Iterator[Planted]:
    """Yield the cases of the faults that slow calls alone."""
    return (single(one) for one in FAULTS.values() if one.key not in ONLY_IN_PAIRS)


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
    """Yield the cases without a fault: at three loads, then at those of faults.

    A service that finds all tokens in its cache answers so fast that it takes the CPUs
    from Keystone, so that load has none.
    """
    for round_ in range(1, rounds + 1):
        for clients in HEALTHY_CLIENTS:
            yield Planted(f"healthy {round_}, {clients} clients", {}, (), clients)
    known = {(clients, MIXED) for clients in HEALTHY_CLIENTS}
    loads = {(one.clients, one.plans) for one in single_faults()} - known
    for clients, plans in sorted(one for one in loads if one[1] != WITH_SERVICE):
        name = f"healthy, {clients} clients, {' and '.join(plans)}"
        yield Planted(name, {}, (), clients, plans)
