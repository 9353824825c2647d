"""The random order of an experiment: rounds with one turn of every arm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

_HASH_SEEDS: Final = 2**32


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of every arm; a run records and resumes whole rounds."""

    number: int
    """Counted from 0."""
    arms: Sequence[str]
    """In the order of their turns."""
    hash_seed: int
    """PYTHONHASHSEED, the same for all arms: it decides the layout of dictionaries."""


def schedule_rounds(arms: Sequence[str], seed: int) -> Iterator[Round]:
    """Yield rounds without end; the same arms and seed give the same rounds."""
    rng = Random(seed)  # noqa: S311 - an order, no secret
    for number in count():
        hash_seed = rng.randrange(1, _HASH_SEEDS)
        yield Round(number, rng.sample(arms, len(arms)), hash_seed)
