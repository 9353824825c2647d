"""Reads in the logs of the nodes which node gave another one what it lacked."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from keylag.lab.galera.node import Node

TRANSFER: Final = re.compile(
    r"Member \S+ \((?P<joiner>\w+)\) requested state transfer from '[^']*'\. "
    r"Selected \S+ \((?P<donor>\w+)\)\(\w+\) as donor"
)
"""Each member of the cluster logs this."""


def log_sizes(nodes: Iterable[Node]) -> dict[Path, int]:
    """Return the size in bytes of the log of each node; raises OSError."""
    return {one.log: one.log.stat().st_size for one in nodes}


def donors_since(sizes: Mapping[Path, int]) -> dict[str, str]:
    """Return the last donor of each node that asked for one, by their names.

    `sizes` are those of the logs before that.  Raises OSError.
    """
    return {
        found["joiner"]: found["donor"]
        for log, size in sizes.items()
        for found in TRANSFER.finditer(_text_after(log, size))
    }


def _text_after(log: Path, size: int) -> str:
    with log.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")
