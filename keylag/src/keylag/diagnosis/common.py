"""What several rules compute."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.configuration import Option
from keylag.diagnosis.facts import Calls, Kind, ratio
from keylag.diagnosis.rule import Evidence, Fix, PerCall, Saving, Suspicion

if TYPE_CHECKING:
    from keylag.services.base import StackOptions

CONFIGURATION: Final = "keystone.conf"


def savings(
    case: Case, seconds: Callable[[Calls], float], low: float = 0.7, high: float = 1.2
) -> dict[Kind, Saving]:
    """Return what each kind of served calls would save, without those of nothing."""
    found = {calls.kind: seconds(calls) for calls in case.facts.served}
    return {
        kind: Saving.about(value, low, high)
        for kind, value in found.items()
        if value > 0
    }


def statements(case: Case) -> Iterable[Evidence]:
    """Yield the statements per call beside those with a warm cache."""
    for calls in case.facts.served:
        warm = case.expected.statements(calls)
        if warm is not None and calls.statements > warm + 1:
            yield Evidence(
                f"SQL statements of {name_kind(calls.kind)}",
                calls.statements,
                "statements",
                "statements",
                warm,
                PerCall(calls.kind),
            )


def name_kind(kind: Kind) -> str:
    """Return the name of a kind of calls: "POST, password"."""
    return ", ".join(filter(None, kind))


def option(group: str, line: str, risk: str) -> Fix:
    """Return a change of one option in keystone.conf: `NAME = VALUE`."""
    name = line.partition("=")[0].strip()
    return Fix(CONFIGURATION, f"[{group}] {line}", risk, Option(group, name))


def with_memcached(options: "StackOptions") -> "StackOptions":
    """Return the options of a stack with the usual cache."""
    return replace(options, cache="memcache_pool")


def rebuild_suspicion(
    case: Case, evidence: Sequence[Evidence], part: float = 1.0
) -> Suspicion:
    """Return the suspicion of a cause of a part of the misses."""
    found = savings(case, lambda calls: part * case.rebuild_seconds(calls))
    return Suspicion(found, [*evidence, *statements(case)])


REVOKES: Final = "DELETE"
FEDERATED: Final = ("mapped", "saml2", "openid")
"""Token calls that write: those that revoke a token, and log-ins of federated users,
whose last use is stored."""


def writes(calls: Calls) -> bool:
    """Return whether calls write to the database.

    Others do now and then: a failed log-in, or the first one of a user on a day.
    """
    method, authentication = calls.kind
    return method == REVOKES or authentication in FEDERATED


WRITES: Final = ("write", "commit")
USUAL_WRITE_SECONDS: Final = 0.04
"""What a log-out spends on its two commits with a usual disk of a cloud."""


def writing_seconds(case: Case) -> float:
    """Return the seconds per second of Keystone's writes and commits."""
    by_call = case.facts.by("sql_call_seconds", "keystone_sql_call")
    return math.fsum(by_call.get(name, 0.0) for name in WRITES)


def write_wait(case: Case, calls: Calls, writing: float) -> float:
    """Return what each call waits for its writes and commits beyond a usual disk.

    All `writing`, in seconds per second, is taken to be of the calls that write, as far
    as their SQL allows.
    """
    if not writes(calls):
        return 0.0
    times = math.fsum(one.per_second for one in case.facts.served if writes(one))
    spent = min(ratio(writing, times), calls.spent(["sql"]))
    return max(spent - USUAL_WRITE_SECONDS, 0.0)


def on_a_faster_disk(case: Case, found: Mapping[Kind, Saving]) -> dict[Kind, Saving]:
    """Return savings that a disk may raise on which a commit takes next to no time."""
    return {
        calls.kind: replace(one, high=one.high + writes(calls) * USUAL_WRITE_SECONDS)
        for calls in case.facts.served
        if (one := found.get(calls.kind))
    }


READ_FOR_NOTHING: Final = 50
"""Rows read for each row sent; with an index there are few."""


def rows_per_sent(case: Case, statement: str) -> float:
    """Return the rows that a statement, by its id, reads for each that it sends."""
    read, sent, times = (
        case.facts.by(name, "id").get(statement, 0.0)
        for name in ("log_rows_examined", "log_rows_sent", "log_calls")
    )
    return ratio(read, max(sent, times))


def step_suspicion(
    case: Case, steps: Sequence[str], of_what: str, phases: Sequence[str] = ()
) -> Suspicion | str:
    """Return the suspicion of steps that take longer than they should.

    What they spend on data that a warm cache would have is left out, on a directory,
    and on a cache that is as slow for other steps.  `phases` count in all steps.
    """

    def beyond(calls: Calls) -> float:
        local = {phase for phase, _ in calls.cells} - {"cache", "ldap", *phases}
        in_cache = calls.spent(["cache"], steps) - _usual_in_cache(case, calls, steps)
        rebuilt = case.rebuild_seconds(calls)
        outside = case.excess(calls, local, steps)
        everywhere = case.excess(calls, phases) if phases else 0.0
        return max(outside + everywhere + max(in_cache, 0.0) - rebuilt, 0.0)

    found = savings(case, beyond, low=0.7, high=1.1)
    if not found:
        return f"Time for {of_what} is what it should be."
    cells = [((), steps), *([(phases, ())] if phases else [])]
    evidence = [
        Evidence(
            f"time for {of_what} of {name_kind(calls.kind)}{_in_phases(among)}",
            calls.spent(among, operations),
            "s",
            "cells",
            case.expected.seconds(calls, among, operations),
            PerCall(calls.kind, among, operations),
        )
        for calls in case.facts.served
        if calls.kind in found
        for among, operations in cells
    ]
    return Suspicion(found, evidence)


def _in_phases(phases: Sequence[str]) -> str:
    return f", in phase {' and '.join(phases)}" if phases else ""


def _usual_in_cache(case: Case, calls: Calls, steps: Sequence[str]) -> float:
    """Return the time of steps in a cache that is as slow as for the other steps."""
    expected = case.expected.seconds(calls, ["cache"], steps) or 0.0
    whole = case.expected.seconds(calls, ["cache"], ()) or 0.0
    others = calls.spent(["cache"]) - calls.spent(["cache"], steps)
    return expected * max(ratio(others, whole - expected), 1.0)


def memcached_is_full(case: Case) -> bool:
    """Return whether memcached evicts items."""
    return (
        case.facts.has("memcached_evictions")
        and case.facts.number("memcached_evictions") > 0
    )


def memcached_refuses(case: Case) -> bool:
    """Return whether memcached is at its limit of connections."""
    return case.facts.has("memcached_connections") and (
        case.facts.number("memcached_connections") >= CONNECTIONS_FULL
        or case.facts.number("memcached_refusals") > 0
        or case.facts.number("memcached_full") > 0
    )


CONNECTIONS_FULL: Final = 0.95
"""memcached keeps some of its connections for itself."""


def server_fails(case: Case) -> bool:
    """Return whether calls to the cache server fail, or the server does not answer."""
    errors = case.facts.number("cache_errors") > FEW_ERRORS * case.cache_calls
    silent = case.facts.has("memcached_up") and case.facts.number("memcached_up") < UP
    return (
        errors or finds_nothing(case) or (silent and "memc" in " ".join(case.backends))
    )


FEW_ERRORS: Final = 0.01
"""Share of the calls to the cache server that may fail: they explain nothing else."""


def finds_nothing(case: Case) -> bool:
    """Return whether no stored value is found: the client skips a dead server."""
    if not case.facts.has("cache_gets", "cache_sets"):
        return False
    found = case.facts.by("cache_gets", "keystone_cache_result")
    stored = case.facts.number("cache_sets")
    return bool(stored and found.get("miss") and not found.get("hit"))


UP: Final = 0.9
"""Smallest share of a window in which a healthy server answers."""
