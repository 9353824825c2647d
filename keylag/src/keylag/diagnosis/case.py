"""A case: facts of a window, what is expected, and what rules compute from both."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from keylag.diagnosis.cache_misses import CacheMisses
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Calls, Facts, bucket_quantile, ratio

DATABASE_PHASES = ("sql", "sql_pool", "orm")
NO_CACHE = ("", "disabled", "dogpile.cache.null", "null")
REDIS = "redis"
MEMCACHED = ("memcache", "pylibmc")
"""Parts of the names of backends that are clients of memcached."""
STALL_SECONDS = 0.1
"""A call that takes longer waits for a time-out: the shortest in use is 0.25 s."""
BUSY = 0.8
"""Share of busy workers from which calls queue."""
QUICKEST = 0.1
"""A distance is in every message, so even the quickest tenth takes it."""
MESSAGES = ("ping", "commit", "rollback", "read")
"""Calls of the database driver that are one message and its answer."""
NEAR_SECONDS = 0.0005
"""A message to a database in the same rack, with the driver's own time."""
STARVED = 1 / 6
"""Share of workers' time that waits for a CPU, from which it matters."""


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    facts: Facts
    expected: Expected

    @cached_property
    def backends(self) -> set[str]:
        """Return the cache backends of all workers."""
        found = self.facts.by("cache_backends", "keystone_cache_backend")
        return {name for name, workers in found.items() if workers}

    @property
    def caches(self) -> bool:
        """Return whether some worker has a cache backend.

        Calls to one tell if that is unknown, or if only some workers have one: for some
        minutes after a restart, the backends of earlier workers are still reported.
        """
        called = any(one.round_trips for one in self.facts.calls)
        if not self.facts.has("cache_backends") and self.facts.calls:
            return called
        cached = {one not in NO_CACHE for one in self.backends}
        return called if len(cached) > 1 else True in cached

    @property
    def busy_workers(self) -> float | None:
        """The busy workers of the server; None if it does not report them."""
        if not self.facts.has("server_workers"):
            return None
        workers = self.facts.by("server_workers", "state")
        return workers.get("busy", 0.0) if workers else None

    @property
    def uses_memcached(self) -> bool:
        """Return whether some worker has memcached, or any cache if that is unknown."""
        if not self.facts.has("cache_backends"):
            return self.caches
        return any(name in one for one in self.backends for name in MEMCACHED)

    def rebuild_seconds(self, calls: Calls) -> float:
        """Return what each call spends on data that a warm cache would have."""
        warm = self.expected.statements(calls)
        if warm is None or calls.statements <= warm:
            return 0.0
        share = 1 - warm / calls.statements
        outside = calls.spent(DATABASE_PHASES) - calls.spent(
            DATABASE_PHASES, ["check_revocation"]
        )
        return share * max(outside, 0.0)

    @cached_property
    def statement_seconds(self) -> float:
        """Return the time of a statement of log-ins, with its pool and the ORM."""
        logins = [one for one in self.facts.served if one.kind[0] == "POST"]
        spent = (one.per_second * one.spent(DATABASE_PHASES) for one in logins)
        statements = (one.per_second * one.statements for one in logins)
        return ratio(math.fsum(spent), math.fsum(statements))

    def missed(self) -> float:
        """Return the share of memoized look-ups that missed."""
        results = self.facts.by("memoized", "keystone_cache_result")
        return ratio(results.get("miss", 0.0), math.fsum(results.values()))

    @cached_property
    def misses(self) -> CacheMisses:
        """Return why look-ups in the cache missed."""
        return CacheMisses.of(self.facts)

    @cached_property
    def queue_seconds(self) -> float:
        """Return the mean wait for a worker, by Little's law."""
        return ratio(self.facts.number("queue"), self.facts.number("requests"))

    @cached_property
    def cpu_wait_share(self) -> float:
        """Return the share of busy workers' time that waits for a CPU; 0 if unknown."""
        if not self.facts.has("cpu_wait_seconds"):
            return 0.0
        waited = self.facts.number("cpu_wait_seconds")
        return min(ratio(waited, self.facts.busy_seconds), 1.0)

    @cached_property
    def busy_share(self) -> float:
        """Return the share of workers that are busy."""
        return ratio(self.facts.busy_seconds, self.facts.number("workers"))

    @cached_property
    def usual_busy_share(self) -> float:
        """Return the share of workers that healthy calls, as many, would keep busy.

        Calls of other routes are taken to be as much slower as token calls are.
        """
        served = self.facts.served
        usual = math.fsum(one.per_second * self.usual_seconds(one) for one in served)
        whole = math.fsum(one.per_second * one.seconds for one in served)
        return self.busy_share * (ratio(usual, whole) if whole else 1.0)

    @cached_property
    def idle_cpu_share(self) -> float:
        """Return the share of the hosts' CPU time that is idle."""
        modes = self.facts.by("host_cpu_seconds", "mode")
        return ratio(modes.get("idle", 0.0), math.fsum(modes.values()))

    @cached_property
    def driver_seconds(self) -> float:
        """Return the time in calls of the database driver, in seconds per second.

        It is at least that of the slow log, and that alone if the driver's is unknown.
        """
        if self.facts.has("sql_call_seconds"):
            measured = self.facts.number("sql_call_seconds")
            return max(measured, self.facts.number("log_seconds"))
        return self.facts.number("log_seconds")

    @cached_property
    def cache_call_buckets(self) -> dict[float, float]:
        """Return the durations of calls to the cache server; empty if unknown."""
        if not self.facts.has("cache_call_buckets"):
            return {}
        return self.facts.buckets("cache_call_buckets")

    @cached_property
    def cache_calls(self) -> float:
        """Return the calls to the cache server per second; 0 if unknown."""
        return max(self.cache_call_buckets.values(), default=0.0)

    def cache_quantile(self, share: float) -> float | None:
        """Return a quantile of single calls to the cache server."""
        return bucket_quantile(self.facts.buckets("cache_call_buckets"), share)

    def sql_quantile(self, share: float, call: str) -> float | None:
        """Return a quantile of one kind of calls of the database driver."""
        buckets = self.facts.buckets("sql_call_buckets", keystone_sql_call=call)
        return bucket_quantile(buckets, share)

    def sql_mean(self, call: str) -> float:
        """Return the mean of one kind of calls of the database driver."""
        by_call = self.facts.by("sql_call_seconds", "keystone_sql_call")
        return ratio(by_call.get(call, 0.0), self.sql_calls(keystone_sql_call=call))

    def sql_calls(self, **labels: str) -> float:
        """Return the calls of the database driver per second, of series with labels."""
        buckets = self.facts.buckets("sql_call_buckets", **labels)
        return max(buckets.values(), default=0.0)

    @cached_property
    def fastest_round_trip_seconds(self) -> float:
        """Return what the fastest tenth of the round trips to the database takes."""
        found = (self.sql_quantile(QUICKEST, name) for name in MESSAGES)
        return min((one for one in found if one is not None), default=0.0)

    @cached_property
    def database_round_trip_seconds(self) -> float:
        """Return what a message to the database and its answer take on their way.

        If even the quickest ones take long, the usual ones say how long.
        """
        quickest = self.fastest_round_trip_seconds
        if quickest <= self.scaled(NEAR_SECONDS):
            return quickest
        logged = (
            self.facts.number("log_seconds") if self.facts.has("log_seconds") else 0.0
        )
        usual = bucket_quantile(self.facts.buckets("sql_call_buckets"), 0.5) or 0.0
        return max(quickest, usual - ratio(logged, self.sql_calls()))

    @cached_property
    def mean_driver_call_seconds(self) -> float:
        """Return the mean time of a call of the database driver; 0 without one."""
        return ratio(self.facts.number("sql_call_seconds"), self.sql_calls())

    @cached_property
    def distance_share(self) -> float:
        """Return the share of the driver's time that a distance to the database costs.

        It is 0 if the fastest round trips are those of a near database, or unknown.
        """
        near = self.scaled(NEAR_SECONDS)
        if not self.facts.has("sql_call_buckets", "sql_call_seconds"):
            return 0.0
        if self.fastest_round_trip_seconds <= near:
            return 0.0
        way = self.database_round_trip_seconds
        return (way - near) / max(self.mean_driver_call_seconds, way)

    @cached_property
    def used_cpus(self) -> float:
        """Return how many CPUs of the hosts are busy, or taken by a hypervisor."""
        modes = self.facts.by("host_cpu_seconds", "mode")
        return math.fsum(modes.values()) - modes.get("idle", 0.0)

    @cached_property
    def others_take_cpu(self) -> bool:
        """Return whether workers wait for CPUs that other programs use."""
        if not self.facts.has("host_cpu_seconds", "cpu_seconds"):
            return False
        own = self.facts.number("cpu_seconds")
        return self.cpu_wait_share >= STARVED and own < self.used_cpus / 2

    def usual_seconds(self, calls: Calls) -> float:
        """Return the time of a call without what slows all calls."""
        expected = self.expected.seconds(calls, (), ())
        return calls.seconds if expected is None else min(calls.seconds, expected)

    def scaled(self, seconds: float) -> float:
        """Return a time of a healthy server, on a machine of this speed."""
        return seconds * max(self.expected.slowness, 1.0)

    def cache_loss_seconds(self, calls: Calls) -> float:
        """Return what each call loses to a cache server that fails."""
        return self.rebuild_seconds(calls) + self.excess(calls, ["cache"])

    def excess(
        self,
        calls: Calls,
        phases: Iterable[str] = (),
        operations: Iterable[str] = (),
    ) -> float:
        """Return the time beyond what is expected on a machine of this speed."""
        phases, operations = tuple(phases), tuple(operations)
        expected = self.expected.seconds(calls, phases, operations)
        if expected is None:
            return 0.0
        return max(calls.spent(phases, operations) - expected, 0.0)


def slow_part(buckets: dict[float, float], above: float) -> tuple[float, float]:
    """Return the calls above a duration, and their time at least; both per second."""
    bounds = sorted(buckets)
    slow, seconds, below = 0.0, 0.0, 0.0
    previous = 0.0
    for bound in bounds:
        count = buckets[bound] - below
        below = buckets[bound]
        if previous >= above:
            slow += count
            seconds += count * previous
        previous = bound
    return slow, seconds


def most_fast_seconds(buckets: dict[float, float], up_to: float) -> float:
    """Return the most time that calls up to a duration can have taken, per second."""
    bounds = [0.0, *sorted(one for one in buckets if one <= up_to)]
    return sum(
        (buckets[bound] - buckets.get(previous, 0.0)) * bound
        for previous, bound in pairwise(bounds)
    )
