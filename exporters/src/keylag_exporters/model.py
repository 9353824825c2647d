"""The interface of sources: options, metrics and `collect`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keylag_exporters.families import Families
    from keylag_exporters.metric import Metric


class UnreachableError(Exception):
    """A source cannot reach what it reads: no server, no file or no permission.

    `families` has the metrics that are available nevertheless.
    """

    def __init__(self, message: str, families: Families | None = None) -> None:
        super().__init__(message)
        self.families = families


@dataclass(frozen=True)
class Option:
    """A setting of a source: a flag, an environment variable and a key in a file.

    The value of a secret comes from a file or the environment, never from a flag.
    """

    name: str
    help: str
    type: Any = str
    """Converts text to a value; raises ValueError for invalid text."""
    default: Any = None
    required: bool = False
    secret: bool = False


class Source(Protocol):
    """Reads one server or file; the collector calls `collect` with a timeout."""

    def collect(self) -> Families:
        """Return all families; raise UnreachableError or any other exception."""

    def close(self) -> None:
        """Release all resources within a second."""


@dataclass(frozen=True)
class SourceType:
    """Declares a source: options, metrics, port and factory."""

    name: str
    help: str
    options: tuple[Option, ...]
    metrics: tuple[Metric, ...]
    create: Callable[[Mapping[str, Any]], Source]
    port: int
    interval: float = 0.0  # default in seconds; 0 reads at each scrape
