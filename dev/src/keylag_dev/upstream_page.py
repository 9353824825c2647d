"""Writes what the fixes of docs/upstream would save, from the results of experiments.

    python -m keylag_dev.upstream_page

Between two comments the page is made by this module; all else is written by hand.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from keylag.experiment.interval import Interval
from keylag.paths import CHECKOUT
from keylag_dev.experiments_page import RESULTS
from keylag_dev.generated_tables import replace_tables
from keylag_dev.lab_page import with_interval

PAGE: Final = CHECKOUT / "docs" / "upstream" / "README.md"
CALLS_PER_SECOND: Final = 1000
INSTALLED: Final = "installed"
FIXED: Final = "fixed"
MEAN: Final = "mean"
COLUMNS: Final = (
    *("fix", "a call", "clients", "as installed", "difference"),
    f"busy worker processes saved at {CALLS_PER_SECOND:,} such calls/s (wall time)",
    "report",
)
Result = Mapping[str, Any]


class Saving(NamedTuple):
    """What an experiment measured of a fix."""

    fix: str
    plan: str
    call: str
    part: str = MEAN
    """Of the call: its mean, or a category of keylag.phases."""

    def cells(self, result: Result) -> tuple[str, ...]:
        """Return the cells of its time, with the sign of the difference."""
        found = _comparison(result, FIXED)
        times = found["measures"] if self.part == MEAN else found["parts"]
        base, difference = times[self.part]["base"], times[self.part]["absolute"]
        change = _interval(difference)
        saved = Interval(-change.high, -change.mid, -change.low)
        return (
            f"{base * 1000:.0f} ms",
            with_interval(change.scaled(1000), 1, " ms"),
            with_interval(saved.scaled(CALLS_PER_SECOND), 1),
        )


class Served(NamedTuple):
    """What Keystone serves at all, as installed and with a fix."""

    fix: str
    plan: str
    call: str

    def cells(self, result: Result) -> tuple[str, ...]:
        """Return the cells of the calls that were served in a second."""
        installed, fixed = (_served(result, arm) for arm in (INSTALLED, FIXED))
        return f"{installed:.1f} calls/s", f"{fixed - installed:+.1f} calls/s", "-"


ROWS: Final = (
    Saving(
        "redis-request-cache, after stale-request-context",
        "upstream-redis",
        "a validation with Redis",
    ),
    Saving("stale-request-context", "upstream-context", "a validation with memcached"),
    Saving(
        "revocation-chains",
        "upstream-chains",
        "a validation without a cache, a thousand log-outs after its token was issued",
    ),
    Served(
        "pymemcache-timeout",
        "upstream-pymemcache",
        "a validation while the cache server hangs",
    ),
    Saving(
        "scrypt-rounds",
        "upstream-scrypt",
        "the hash of a log-in with scrypt and `password_hash_rounds = 14`",
        "password_hash",
    ),
)
UNMEASURED: Final = (
    "| last-active-retry | a log-in that Galera refuses | - | it fails | it succeeds "
    "| no measured saving | - |"
)


def render(text: str, results: Path = RESULTS) -> str:
    """Return the page with its table replaced."""
    return replace_tables(text, {"savings": _table(results)})


def _table(results: Path) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for one in ROWS:
        yield f"| {' | '.join(_cells(one, results))} |"
    yield UNMEASURED


def _cells(one: Saving | Served, results: Path) -> tuple[str, ...]:
    path = results / one.plan / "result.json"
    if not path.exists():
        return (one.fix, one.call, *5 * ["-"])
    result = json.loads(path.read_text(encoding="utf-8"))
    clients = str(result["plan"]["load"]["properties"]["threads"])
    report = f"[`{one.plan}`](../experiments/{one.plan}/report.md)"
    return (one.fix, one.call, clients, *one.cells(result), report)


def _served(result: Result, arm: str) -> float:
    found = _comparison(result, arm)["measures"].get("throughput")
    return float(found["arm"]) if found else 0.0


def _comparison(result: Result, arm: str) -> Mapping[str, Any]:
    wanted = (arm, result["decision"]["method"])
    found: Mapping[str, Any] = next(
        one for one in result["comparisons"] if (one["arm"], one["method"]) == wanted
    )
    return found


def _interval(found: Mapping[str, Any]) -> Interval:
    # JSON has null for an infinite end.
    low, high = found["low"], found["high"]
    return Interval(
        -math.inf if low is None else low,
        found["mid"],
        math.inf if high is None else high,
    )


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
