"""Measure everything in turns, in the random order that one seed decides.

Each restart begins with a warm-up.  In each of its rounds every part, and every call of
every tuning, has one turn.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random

from keylag_bench.limits.client import Sample
from keylag_bench.limits.servers import PART, Key, Take
from keylag_bench.limits.tables import CALLS, PARTS

WARM_UP_TURNS = 2
_HASH_SEEDS = 2**32

Restart = Mapping[Key, Sequence[Sample]]
"""All samples of a restart."""
Restarted = Callable[[int, int], AbstractContextManager[Mapping[Key, Take]]]
"""Takes the number of a restart and its hash seed."""


@dataclass(frozen=True)
class Size:
    """How often everything is measured."""

    restarts: int
    rounds: int
    """Of each restart."""
    seed: int


def runs_in_turn(key: Key) -> int:
    """Return the runs or requests of a turn."""
    kind, name = key
    return PARTS[name].runs if kind == PART else CALLS[name].requests


def measure(
    size: Size, restarted: Restarted, on_restart: Callable[[int], None]
) -> list[Restart]:
    """Return the samples of all restarts; `on_restart` gets the number of each."""
    rng = Random(size.seed)
    found: list[Restart] = []
    for number in range(size.restarts):
        on_restart(number)
        with restarted(number, rng.randrange(1, _HASH_SEEDS)) as takes:
            for _ in range(WARM_UP_TURNS):
                _measure_round(takes, rng)
            rounds = [_measure_round(takes, rng) for _ in range(size.rounds)]
        found.append({key: [s for one in rounds for s in one[key]] for key in takes})
    return found


def _measure_round(takes: Mapping[Key, Take], rng: Random) -> Restart:
    order = rng.sample(list(takes), len(takes))
    return {key: takes[key](runs_in_turn(key)) for key in order}
