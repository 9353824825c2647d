"""The order of an experiment: rounds with a turn of every arm, all from one seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

_HASH_SEEDS: Final = 2**32


@dataclass(frozen=True, slots=True)
class Round:
    """What is run, written down and gone on with as a whole."""

    number: int
    arms: Sequence[str]
    """In the order of their turns."""
    hash_seed: int
    """Python's, the same for all arms: it decides how dictionaries lie."""


def schedule_rounds(arms: Sequence[str], seed: int) -> Iterator[Round]:
    """Give the rounds without end; the same ones for the same arms and seed."""
    choice = Random(seed)  # noqa: S311 - an order, no secret
    for number in count():
        hash_seed = choice.randrange(1, _HASH_SEEDS)
        yield Round(number, choice.sample(arms, len(arms)), hash_seed)
