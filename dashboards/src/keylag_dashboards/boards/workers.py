"""Dashboard *Workers*: free workers, and what busy ones do."""

from typing import Final

from keylag_dashboards.config import BAD, GOOD, WARNING
from keylag_dashboards.model import Board, Column, Panel, Row, State
from keylag_dashboards.queries.workers import QUERIES, SHOWN_WORKERS

_POINTS: Final = 300
"""Values of a line whose query reads a series of each worker, or of each route."""


def _spread(
    title: str, hint: str, name: str, explained_by: tuple[str, ...] = ()
) -> Panel:
    """Return a panel with the largest, the median and the smallest worker's share."""
    return Panel(
        title,
        f"{hint} The median of several controllers is that of their medians.",
        "percentunit",
        "lines",
        {"highest": f"{name}_max", "median": f"{name}_median", "lowest": f"{name}_min"},
        width=8,
        maximum=1,
        points=_POINTS,
        explained_by=explained_by,
    )


WORKERS: Final = Row(
    "Workers",
    (
        Panel(
            "Workers busy, by phase",
            "Wall time in seconds per second, all routes: the number of busy workers."
            " sql, sql pool, cache and ldap mostly wait; the other phases mostly use a"
            " CPU, or wait for one.",
            "short",
            "stacked",
            {"{{keystone_phase}}": "phases"},
            width=24,
            height=10,
            decimals=2,
            explained_by=("workers: Busiest routes", "workers: Waiting connections"),
        ),
        _spread(
            "Busy share of a worker",
            "Near 100 % in the median: calls queue. Add processes or reduce work. Only"
            " the highest: one worker gets too much, or hangs.",
            "busy",
            ("workers: Waiting connections", "workers: Workers"),
        ),
        _spread(
            "CPU share of a worker",
            "Far below the busy share: workers wait for servers or for a CPU.",
            "cpu",
            (
                "sql: Time in SQL per call",
                "cache: Time per round trip",
                "host: CPU time by program",
            ),
        ),
        _spread(
            "Garbage collection",
            "Share of a worker's time, included in all phases. Above a few percent:"
            " memory has grown.",
            "gc",
            ("workers: Collections by generation", "workers: Memory of a worker"),
        ),
        Panel(
            "Workers",
            f"The {SHOWN_WORKERS} busiest. One slow worker: a cold cache. All of one"
            " controller: a problem of its host.",
            "percentunit",
            "table",
            {
                "busy": "worker_busy",
                "CPU": "worker_cpu",
                "GC": "worker_gc",
                "calls/s": "worker_calls",
                "mean": "worker_mean",
            },
            height=9,
            columns={
                "worker": Column(),
                "busy": Column("percentunit", 80, 1),
                **dict.fromkeys(("CPU", "GC"), Column("percentunit", 68, 1)),
                "calls/s": Column("short", 75, 1),
                "mean": Column("s", 80),
            },
            empty_reason="a worker without calls in this minute has no mean",
            empty_legends=("mean",),
        ),
        Panel(
            "Busiest routes",
            "Busy workers by route, over the time shown. Token calls share their"
            " workers with these routes.",
            "short",
            "table",
            {
                "busy": "route_seconds",
                "calls/s": "route_calls",
                "mean": "route_mean",
            },
            height=9,
            points=_POINTS,
            columns={
                "method": Column(width=75),
                "route": Column(),
                "busy": Column("short", 70, 2),
                "calls/s": Column("short", 75, 1),
                "mean": Column("s", 80),
            },
            explained_by=("tokens: Time per call, by category",),
        ),
        Panel(
            "Collections by generation",
            "Generation 2 examines all objects; frequent collections raise p99.",
            "ops",
            "lines",
            {"generation {{cpython_gc_generation}}": "collections"},
            width=24,
        ),
    ),
)

SERVER: Final = Row(
    "uWSGI",
    (
        Panel(
            "Workers by state",
            "No idle worker for long: calls wait before Keystone receives them.",
            "short",
            "stacked",
            {"{{state}}": "states"},
            width=8,
            decimals=0,
            explained_by=("workers: Workers busy, by phase",),
        ),
        Panel(
            "Waiting connections",
            "Time in this queue is part of no breakdown: no worker has started yet.",
            "short",
            "lines",
            {"waiting at {{socket}}": "queue", "limit": "queue_limit"},
            width=8,
            decimals=0,
            limits=("limit",),
            empty_reason="the queue is far shorter than its limit",
            empty_legends=("limit",),
            explained_by=("workers: Workers by state", "workers: Busiest routes"),
        ),
        Panel(
            "Memory of a worker",
            "Steady growth is a leak; max-requests recycles workers.",
            "bytes",
            "lines",
            {"highest": "memory_max", "median": "memory_median"},
            width=8,
        ),
        Panel(
            "Worker starts",
            "A worker starts with cold caches; frequent starts slow calls down.",
            "ops",
            "lines",
            {"{{instance}}": "starts"},
            width=8,
        ),
        Panel(
            "Lost calls",
            "Queue full, requests killed, exceptions. Add workers, or raise harakiri.",
            "ops",
            "lines",
            {
                "queue full": "queue_full",
                "killed": "killed",
                "exceptions": "exceptions",
            },
            width=8,
            thresholds={0.001: BAD},
            explained_by=("workers: Waiting connections",),
        ),
        Panel(
            "Time outside the application",
            "Request time in uWSGI itself, such as reading bodies from slow clients."
            " Of all controllers: choose all exporters.",
            "s",
            "lines",
            {"seconds per second": "outside_app"},
            width=8,
        ),
    ),
    source="uwsgi",
)

HASHING: Final = Row(
    "Passwords and keys",
    (
        Panel(
            "Hashes per second",
            "One per password and per secret of an application credential.",
            "ops",
            "lines",
            {
                "{{keystone_password_hash_action}} {{keystone_password_hash_algorithm}}"
                " {{keystone_password_hash_cost}}": "hash_rate"
            },
            width=8,
        ),
        Panel(
            "Time of a hash",
            "With bcrypt and scrypt it doubles with each step of the cost. It rises on"
            " a busy CPU.",
            "s",
            "lines",
            {"mean": "hash_time"},
            width=8,
            explained_by=(
                "workers: Cost of new passwords",
                "workers: CPU share of a worker",
            ),
        ),
        Panel(
            "Share of hashing",
            "Of all workers' time. Above one half, log-ins delay all other calls.",
            "percentunit",
            "lines",
            {"hashing": "hash_share"},
            width=8,
            thresholds={0.5: WARNING},
            explained_by=(
                "workers: Hashes per second",
                "tokens: Failed authentications",
            ),
        ),
        Panel(
            "Cost of new passwords",
            "Rounds, or log2(n) for scrypt. Old passwords keep theirs until changed.",
            "short",
            "stat",
            {"{{keystone_password_hash_algorithm}}": "hash_cost"},
            width=8,
            height=5,
            decimals=0,
            show_name=True,
        ),
        Panel(
            "Configuration",
            "Workers by configuration. More than one row: a change is incomplete.",
            "short",
            "table",
            {"workers": "configuration"},
            width=16,
            height=5,
            columns={
                "cache": Column(),
                "token": Column(width=150),
                "password hash": Column(width=150),
                "workers": Column("locale", 100, 0),
            },
        ),
        Panel(
            "Fernet keys",
            "Decrypting a token may try all of them. Lowest and highest age of the"
            " primary key: hours between both, and workers have different keys.",
            "s",
            "table",
            {"number": "keys", "lowest age": "key_age", "highest age": "oldest_key"},
            width=24,
            height=5,
            columns={
                "keys": Column(),
                "number": Column("locale", 100, 0),
                "lowest age": Column("s", 120, 1),
                "highest age": Column("s", 120, 1),
            },
        ),
    ),
)

OWN: Final = Row(
    "Keylag itself",
    (
        Panel(
            "Success of sources",
            "The last read. Failed: panels of this source show old data.",
            "short",
            "table",
            {"read": "source_success"},
            width=8,
            height=8,
            columns={
                "exporter": Column(),
                "source": Column(width=94),
                "read": Column(
                    width=84,
                    states={0: State("failed", BAD), 1: State("succeeded", GOOD)},
                ),
            },
            explained_by=("workers: Faults and failures",),
        ),
        Panel(
            "Duration of a read",
            "Near the timeout: raise the interval or the timeout.",
            "s",
            "lines",
            {"{{source}}": "source_seconds"},
            width=8,
        ),
        Panel(
            "Faults and failures",
            "Faults: exceptions in Keylag's code, which did not reach Keystone.",
            "ops",
            "lines",
            {
                "{{source}} {{reason}}": "source_failures",
                "{{keylag_seam}}": "faults",
            },
            width=8,
            empty_reason="there is no exporter, or none of its reads ever failed",
            empty_legends=("{{source}} {{reason}}",),
        ),
    ),
)

BOARD: Final = Board(
    name="workers",
    title="Keylag / Workers",
    purpose="Load of the workers, queueing, password hashing, and Keylag itself.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "instance", "exporter"),
    rows=(WORKERS, SERVER, HASHING, OWN),
)
