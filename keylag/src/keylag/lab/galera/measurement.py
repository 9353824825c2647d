"""Measures what token calls take over a link, and what a write sends over it."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from keylag.experiment.interval import Interval
from keylag.jtl import Sample
from keylag.lab import intervals
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.load import LabLoad, keylag_on, read_samples
from keylag.lab.named_causes import named_causes
from keylag.lab.network import Host
from keylag.phases import category_of

PLAN: Final = "token-mixed"
SQL: Final = "sql"
"""The category of a breakdown in which commits wait."""
Status = Mapping[str, Mapping[str, str]]
"""Galera's status of each node."""
Shares = Mapping[str, int]
"""Of the kinds of calls, in per cent."""

SHARES: Final[Shares] = {"issue": 30, "validate": 60, "revoke": 10, "revoked": 0}
"""None with a token that is revoked already.

If most tokens were revoked, that would be a cause of its own: R3.
"""
SETTLE_SECONDS: Final = 3.0
"""After a change of the link, before anything is measured."""
IDLE_SECONDS: Final = 5.0
"""How long the traffic without calls is measured."""
CONFLICTS: Final = ("local_cert_failures", "local_bf_aborts")
"""Galera's counters of transactions that lost to one of another node, which wrote the
same row: at their commit, and before."""
LONGER_SECONDS: Final = 30
"""How much longer the clients of the second site send, to be there all the time."""


@dataclass(frozen=True)
class Latencies:
    """What calls of a kind took at the client, in seconds."""

    count: int
    failed: int
    median: Interval
    """With its interval at 95 %; without one for few calls."""
    sql_seconds: float | None = None
    """Median of the time in SQL, by Keystone's breakdown; None if no call has one."""


@dataclass(frozen=True)
class Measured:
    """Token calls of the client at the first site, under one link."""

    link: Link
    calls: Mapping[str, Latencies]
    """By their labels in the load plan, such as `POST /v3/auth/tokens password`."""
    writes: int
    """Transactions that the cluster committed."""
    bytes_per_write: float | None
    """Over the link, in both directions, beyond what an idle cluster sends; None if
    statements pass the link, too, because the first site has a far database."""
    causes: tuple[str, ...] | None
    """What `keylag diagnose` named, the likeliest first; None if it failed."""
    conflicts: int = 0
    """Transactions that Galera refused because another node wrote the same row."""
    second_site: Mapping[str, Latencies] = field(default_factory=dict)
    """Calls of the client at the second site, by their labels; empty without one."""

    @property
    def failed(self) -> int:
        """How many calls failed at both sites."""
        calls = (*self.calls.values(), *self.second_site.values())
        return sum(one.failed for one in calls)

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for an unknown limit."""
        return {
            "link": self.link.as_json(),
            "calls": _as_json(self.calls),
            "writes": self.writes,
            "bytes_per_write": self.bytes_per_write,
            "causes": self.causes,
            "conflicts": self.conflicts,
            "second_site": _as_json(self.second_site),
        }


def _as_json(calls: Mapping[str, Latencies]) -> dict[str, Any]:
    return {
        label: {
            "count": one.count,
            "failed": one.failed,
            "median_seconds": intervals.as_json(one.median),
            "sql_seconds": one.sql_seconds,
        }
        for label, one in calls.items()
    }


def measure(
    lab: GaleraWan, link: Link, seconds: int, out: Path, *, both_sites: bool = False
) -> Measured:
    """Set the link, and send token calls for some seconds; raises LabError.

    One client sends them at the first site, or one at each of both.  `out` is a new
    folder for the samples.  A diagnosis that fails is printed, and costs no other
    figure.
    """
    lab.wan.change(link)
    time.sleep(SETTLE_SECONDS)
    idle_bytes_per_second = _sent_bytes(lab, IDLE_SECONDS) / IDLE_SECONDS
    begun, bytes_before = time.monotonic(), _total_bytes(lab)
    before = lab.status()
    router, second = (one.router for one in lab.wan.network().sites)
    beside = out.with_name(f"{out.name}-{second.name}")
    with _sending(lab, second, beside, seconds) if both_sites else nullcontext():
        token_load(seconds).send(keylag_on(router), out, keystone_at(lab, router))
    after = lab.status()
    writes = _last_committed(after) - _last_committed(before)
    idle = idle_bytes_per_second * (time.monotonic() - begun)
    sent = _total_bytes(lab) - bytes_before - idle
    is_far = lab.cluster().options.far_database
    per_write = None if is_far else max(sent, 0) / max(writes, 1)
    calls = read_latencies(out)
    causes = try_to_diagnose(lab.folder, router, seconds)
    conflicts = _conflicts(after) - _conflicts(before)
    others = read_latencies(beside) if both_sites else {}
    return Measured(link, calls, writes, per_write, causes, conflicts, others)


def _sending(
    lab: GaleraWan, router: Host, out: Path, seconds: int
) -> AbstractContextManager[None]:
    """Send the same token calls at another site while the context lasts."""
    load = token_load(seconds + LONGER_SECONDS)
    return load.sending(keylag_on(router), out, keystone_at(lab, router))


def try_to_diagnose(lab: Path, router: Host, seconds: int) -> tuple[str, ...] | None:
    """Return the ids as `diagnose` does; print why, and return None, if it fails."""
    try:
        return diagnose(lab, router, seconds)
    except LabError as error:
        click.echo(error, err=True)
        return None


def diagnose(lab: Path, router: Host, seconds: int) -> tuple[str, ...]:
    """Return the ids of the causes of the last seconds of a site; raises LabError."""
    folder = site_folder(lab, router.name)
    found = named_causes(folder, seconds, keylag_on(router))
    return tuple(one["id"] for one in found)


def token_load(seconds: int, clients: int = 1, shares: Shares = SHARES) -> LabLoad:
    """Return the load of token calls."""
    properties = {f"{name}_percent": share for name, share in shares.items()}
    return LabLoad(PLAN, seconds, clients, properties)


def keystone_at(lab: GaleraWan, router: Host) -> list[str]:
    """Return the options of `keylag load` that name the Keystone of a site."""
    return [f"--state={site_folder(lab.folder, router.name)}"]


def read_latencies(out: Path) -> dict[str, Latencies]:
    """Return the latencies in the samples of a load, by label; raises LabError."""
    found = defaultdict[str, list[Sample]](list)
    failed = defaultdict[str, int](int)
    for one in read_calls(out):
        if not one.success:
            failed[one.label] += 1
        elif not one.refused:
            found[one.label].append(one)
    return {
        label: _latencies(found[label], failed[label])
        for label in sorted({*found, *failed})
    }


def _latencies(calls: Sequence[Sample], failed: int) -> Latencies:
    sql = [
        sum(seconds for cell, seconds in cells.items() if category_of(cell) == SQL)
        for cells in (one.timing.cells for one in calls if one.timing)
    ]
    latency = intervals.median([one.elapsed_seconds for one in calls])
    return Latencies(len(calls), failed, latency, median(sql) if sql else None)


def read_calls(out: Path) -> list[Sample]:
    """Return the calls of a load, without its set-up; raises LabError."""
    return [one for one in read_samples(out) if not one.is_setup]


def _sent_bytes(lab: GaleraWan, seconds: float) -> int:
    before = _total_bytes(lab)
    time.sleep(seconds)
    return _total_bytes(lab) - before


def _total_bytes(lab: GaleraWan) -> int:
    return sum(one.bytes for one in lab.wan.traffic().values())


def _last_committed(status: Status) -> int:
    """Return the number of the last transaction of the cluster; raises LabError."""
    numbers = [int(one["last_committed"]) for one in status.values() if one]
    if not numbers:
        message = "No database node runs. `keylag lab galera-wan up` starts them."
        raise LabError(message)
    return max(numbers)


def _conflicts(status: Status) -> int:
    return sum(int(one.get(name, 0)) for one in status.values() for name in CONFLICTS)
