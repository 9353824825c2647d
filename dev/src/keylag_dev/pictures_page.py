"""Writes docs/dashboards.md: what the pictures of the dashboards show."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.paths import CHECKOUT
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.model import Board

PAGE: Final = CHECKOUT / "docs" / "dashboards.md"
IMAGES: Final = PAGE.parent / "images" / "dashboards"
DEAD_RETRY_SECONDS: Final = 30
"""How long Keystone avoids a memcached that did not answer; by default 300."""
INTRODUCTION: Final = """\
# The dashboards during a fault

<!-- Made by `make pictures`; run it again instead of editing. -->

Each picture shows the same {minutes:.0f} minutes of one stack, under a load of logins,
validations, revocations and calls of a service.
At {fault} memcached was stopped, and at {cure} it was started again.
Keystone avoids a memcached that did not answer for {retry} s
(`[cache] memcache_dead_retry`), so the cure takes effect up to {retry} s later.

```console
$ make pictures
```

takes these pictures again; it needs Grafana 12 and Chromium on the PATH.
"""
READINGS: Final[Mapping[str, str]] = {
    "home": (
        "The state tells whether calls fail or are late; a call that is only slower is "
        "in time. "
        "*Widest category now* names the category to look at, and its link leads there."
    ),
    "tokens": (
        "At {fault} the mean time of both methods rises, by SQL and ORM: what the cache"
        " had answered comes from the database. "
        "*Likely cause* names the cache server."
    ),
    "sql": (
        "At {fault} the SQL time of a call grows, the larger part of it outside of the "
        "database, and *Round trips per call* jumps for GET: more statements, no slower"
        " database. "
        "*Statements by table class* names the tables that are read."
    ),
    "galera": (
        "The pictured stack has one database server, so the panels of nodes are empty."
        " At {fault} the SQL time of a call grows, and that of a statement does not."
    ),
    "cache": (
        "The hits of the backend fall to zero at {fault} and come back after {cure}. "
        "The hits of the request-local cache stay, because it needs no server."
    ),
    "revocation": (
        "At {fault} the SQL time of a check grows, because its list of events is no "
        "longer cached. "
        "*Events written* does not jump: the events are not the cause."
    ),
    "workers": (
        "From {fault} on the workers are busier, in SQL and ORM. "
        "Their time for password hashes does not follow: logins are not the cause."
    ),
    "host": (
        "From {fault} on, the database's program and Keystone's workers take more of "
        "the CPU, and the pressure of the CPU rises with the time of a call."
    ),
    "services": (
        "The service has its token cache in the same memcached: at {fault} *Hits* falls"
        " to zero, and it asks Keystone for each token. "
        "*Authentication by method* shows what that costs a request."
    ),
    "experiment": (
        "At {fault} the mean time of a call rises, in the only arm. "
        "In an experiment each arm has a line."
    ),
}
"""How to read the fault in each dashboard."""


@dataclass(frozen=True)
class Fault:
    """When a load began, its fault began and ended, and it ended; Unix times."""

    start: float
    fault: float
    cure: float
    end: float

    def texts(self) -> dict[str, str]:
        """Return the times of the fault as they are at the axes."""
        moments = {"fault": self.fault, "cure": self.cure}
        return {
            name: time.strftime("%H:%M", time.gmtime(moment))
            for name, moment in moments.items()
        }


def picture_files(name: str) -> list[Path]:
    """Return the pictures of a dashboard: dark, and light if there is one."""
    names = (f"{name}.png", f"{name}-light.png")
    return [IMAGES / one for one in names if (IMAGES / one).exists()]


def write_page(fault: Fault) -> None:
    """Write the page about the pictures that exist."""
    minutes = (fault.end - fault.start) / 60
    first = INTRODUCTION.format(
        minutes=minutes, retry=DEAD_RETRY_SECONDS, **fault.texts()
    )
    sections = ("\n".join(_section(board, fault)) for board in BOARDS)
    PAGE.write_text("\n".join([first, *sections]), encoding="utf-8")


def _section(board: Board, fault: Fault) -> Iterator[str]:
    title = board.title.removeprefix("Keylag / ")
    yield f"## {title}\n"
    yield READINGS[board.name].format(**fault.texts()) + "\n"
    for picture in picture_files(board.name):
        yield f"![{title}]({picture.relative_to(PAGE.parent)})\n"
