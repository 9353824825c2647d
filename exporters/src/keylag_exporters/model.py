"""What a source is: metrics and options that it declares, and one method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keylag_exporters.families import Families


class UnreachableError(Exception):
    """What the source reads cannot be reached: no server, no file, no permission.

    `families` is what can be told nevertheless.
    """

    def __init__(self, message: str, families: Families | None = None) -> None:
        super().__init__(message)
        self.families = families


@dataclass(frozen=True)
class Declared:
    """A metric family: declared once, exported and documented from here."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """A setting of a source: a flag, an environment variable and a key in a file.

    `secret` marks what may come from a file or the environment, never from a flag.
    """

    name: str
    help: str
    type: Any = str
    """Makes a value of a text; raises ValueError for what is none."""
    default: Any = None
    required: bool = False
    secret: bool = False


class Source(Protocol):
    """Reads one thing. `collect` may block; it is called with a time-out around it."""

    def collect(self) -> Families:
        """Return the families of this moment, or raise."""

    def close(self) -> None:
        """Let go of everything within a second."""


@dataclass(frozen=True)
class Kind:
    """One row of the table of sources."""

    name: str
    help: str
    options: tuple[Option, ...]
    metrics: tuple[Declared, ...]
    open: Callable[[Mapping[str, Any]], Source]
    port: int
    interval: float = 0.0  # default of the option: what reading costs others decides
