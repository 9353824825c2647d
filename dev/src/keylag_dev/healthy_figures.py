"""Measures the healthy figures that a diagnosis compares with.

    python -m keylag_dev.healthy_figures

Starts a stack with memcached, sends each kind of token call some hundred times, one
after the other, and writes keylag/src/keylag/diagnosis/healthy.json.  Counts are the
same on all machines; times are scaled by those that read them.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from keylag.demo import SAMPLE_CLOUD
from keylag.diagnosis.expected import SHIPPED
from keylag.diagnosis.facts import Calls, Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.reading import read_facts
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.trace.calls import CALLS, send_call, stack_session

WARM_UP_CALLS: Final = 20
CALLS_OF_A_KIND: Final = 200
LAST: Final = "revoke"
"""This call slows those after it: it adds an event, and empties the cache of tokens."""
EXPORT_SECONDS: Final = 12
"""After this time Prometheus has the last calls."""
DIGITS: Final = 7


def measure(folder: Path, console: Console) -> list[dict[str, Any]]:
    """Return the figures of each kind of call, measured on a stack in a folder."""
    options = StackOptions(cache="memcache_pool", processes=1)
    with Stack(
        folder, Tools.load(), options, initial_data=SAMPLE_CLOUD, console=console
    ) as stack:
        others = [kind for kind in CALLS if kind != LAST]
        found = [_measure(stack, kinds, console) for kinds in (others, [LAST])]
    by_kind = {calls.kind: calls for served in reversed(found) for calls in served}
    return [_figures(calls) for calls in by_kind.values()]


def _measure(stack: Stack, kinds: Sequence[str], console: Console) -> Sequence[Calls]:
    session = stack_session(stack)
    for kind in kinds:
        _send(session, kind, WARM_UP_CALLS)
    time.sleep(EXPORT_SECONDS)
    start = time.time()
    for kind in kinds:
        console.print(f"{CALLS_OF_A_KIND} calls: {kind}")
        _send(session, kind, CALLS_OF_A_KIND)
    time.sleep(EXPORT_SECONDS)
    window = Window(start, time.time())
    return read_facts(Prometheus(stack.url("prometheus")), window).served


def _send(session: Any, kind: str, times: int) -> None:
    for _ in range(times):
        send_call(session, kind)


def _figures(calls: Calls) -> dict[str, Any]:
    cells: dict[str, dict[str, float]] = {}
    for (phase, operation), seconds in sorted(calls.cells.items()):
        cells.setdefault(phase, {})[operation] = round(seconds, DIGITS)
    method, auth_method = calls.kind
    return {
        "method": method,
        "auth_method": auth_method,
        "statements": round(calls.statements, 1),
        "round_trips": round(calls.round_trips, 1),
        "quantiles": {
            share: round(seconds, DIGITS) for share, seconds in calls.quantiles.items()
        },
        "cells": cells,
    }


def main() -> None:
    """Measure and write the figures."""
    console = Console()
    with TemporaryDirectory() as folder:
        figures = measure(Path(folder), console)
    content = {"comment": "Made by `python -m keylag_dev.healthy_figures`."}
    text = json.dumps({**content, "calls": figures}, indent=1)
    SHIPPED.write_text(f"{text}\n", encoding="utf-8")
    console.print(f"Wrote {SHIPPED}.")


if __name__ == "__main__":
    main()
