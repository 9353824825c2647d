"""The cases that `make test-diagnosis` plants: single faults, pairs, decoys, none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from keylag.faults.registry import FAULTS

HEALTHY_CLIENTS: Final = (1, 2, 4)
"""Clients of a healthy stack."""
PAIRS: Final = (
    ("C4", "H3"),
    ("C2", "H1"),
    ("C8", "D1"),
    ("D3", "W2"),
    ("R1", "D1"),
    ("D2", "H3"),
    ("C4", "D4"),
    ("A2", "H1"),
)
"""Faults that are planted together."""
DECOYS: Final[Mapping[str, float]] = {
    "C4": 0.1,
    "D1": 0.1,
    "C8": 0.02,
    "H2": 0.05,
    "H3": 0.02,
    "R1": 3,
    "R3": 0.02,
    "A2": 30,
    "T1": 5,
}
"""Faults whose strength costs a call next to nothing: they look like a cause."""


@dataclass(frozen=True)
class Planted:
    """One case: a name, the faults in it with their strengths, and the right answer."""

    name: str
    faults: Mapping[str, float | None]
    expected: tuple[str, ...]
    clients: int = 2


def single_faults() -> Iterator[Planted]:
    """Yield a case for each fault, as strong as it is by default."""
    for fault in FAULTS.values():
        yield Planted(fault.key, {fault.key: None}, (fault.id,), max(fault.clients, 2))


def pairs() -> Iterator[Planted]:
    """Yield the cases of two faults at the same time."""
    for keys in PAIRS:
        yield Planted("+".join(keys), dict.fromkeys(keys), keys)


def decoys() -> Iterator[Planted]:
    """Yield the cases of faults that are too weak to matter."""
    for key, strength in DECOYS.items():
        yield Planted(f"decoy {key}", {key: strength}, ())


def healthy(rounds: int) -> Iterator[Planted]:
    """Yield the cases without a fault."""
    for round_ in range(1, rounds + 1):
        for clients in HEALTHY_CLIENTS:
            yield Planted(f"healthy {round_}, {clients} clients", {}, (), clients)
