"""The order of an experiment: blocks of one turn of every arm, all from one seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

_HASH_SEEDS: Final = 2**32


@dataclass(frozen=True, slots=True)
class Turn:
    """One arm's load within a block."""

    block: int
    position: int
    arm: str
    hash_seed: int
    """Python's, the same for all arms of a block: it decides how dictionaries lie."""


def turns(arms: Sequence[str], seed: int) -> Iterator[Turn]:
    """Give the turns without end; the same ones for the same arms and seed."""
    choice = Random(seed)  # noqa: S311 - an order, no secret
    for block in count():
        hash_seed = choice.randrange(1, _HASH_SEEDS)
        for position, arm in enumerate(choice.sample(arms, len(arms))):
            yield Turn(block, position, arm, hash_seed)
