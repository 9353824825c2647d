"""Dashboard *Workers and host*: free workers, and what busy ones do."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.workers import QUERIES

WORKERS: Final = Row(
    "Workers",
    (
        Panel(
            "Workers busy, by phase",
            "Seconds of wall time a second, all routes. sql, sql_pool, cache and ldap"
            " mostly wait; the others mostly use a processor, or wait for one.",
            "short",
            "stacked",
            {"{{keystone_phase}}": "phases"},
        ),
        Panel(
            "Busy share of each worker",
            "Near 100 % in all of them, calls queue up: more processes, or less work.",
            "percentunit",
            "lines",
            {"{{instance}}": "busy"},
            width=6,
        ),
        Panel(
            "Busiest routes",
            "Seconds of work a second: token calls share their workers with these.",
            "short",
            "lines",
            {"{{http_request_method}} {{http_route}}": "routes"},
            width=6,
            drill_down=("tokens",),
        ),
        Panel(
            "Processor time of each worker",
            "Far below the busy share, a worker waits: for others, or for a processor.",
            "percentunit",
            "lines",
            {"{{instance}}": "cpu"},
            width=8,
        ),
        Panel(
            "Collecting garbage",
            "Share of a worker's time, in whatever phase it interrupts: above some"
            " percent, memory has grown.",
            "percentunit",
            "lines",
            {"{{instance}}": "gc_share"},
            width=8,
        ),
        Panel(
            "Collections by generation",
            "Generation 2 looks at every object: often, and p99 shows it.",
            "ops",
            "lines",
            {"generation {{cpython_gc_generation}}": "collections"},
            width=8,
        ),
    ),
)

SERVER: Final = Row(
    "uWSGI",
    (
        Panel(
            "Workers by state",
            "No idle one for long: callers wait before Keystone sees them.",
            "short",
            "stacked",
            {"{{state}}": "states"},
            width=8,
        ),
        Panel(
            "Connections that wait",
            "Time in this queue is in no breakdown: it passes before a worker begins.",
            "short",
            "lines",
            {"waiting at {{socket}}": "queue", "limit": "queue_limit"},
            width=8,
        ),
        Panel(
            "Memory of each worker",
            "Growing without end is a leak: max-requests recycles workers.",
            "bytes",
            "lines",
            {"{{instance}} {{worker}}": "memory"},
            width=8,
        ),
        Panel(
            "Starts of workers",
            "A worker that starts often begins each time with cold caches.",
            "ops",
            "lines",
            {"{{instance}} {{worker}}": "starts"},
            width=8,
        ),
        Panel(
            "Queue full, requests killed, exceptions",
            "Each is a call that was lost: more workers, or a longer harakiri.",
            "ops",
            "lines",
            {
                "queue full": "queue_full",
                "killed": "killed",
                "exceptions": "exceptions",
            },
            width=8,
        ),
        Panel(
            "Time outside the application",
            "What uWSGI itself takes for requests: reading bodies from slow callers.",
            "s",
            "lines",
            {"seconds per second": "outside_app"},
            width=8,
        ),
    ),
)

HASHING: Final = Row(
    "Passwords and keys",
    (
        Panel(
            "Hashes per second",
            "Each password and each application credential's secret costs one.",
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
            "It doubles with each step of the cost, and on a busy processor.",
            "s",
            "lines",
            {"mean": "hash_time"},
            width=8,
        ),
        Panel(
            "Share of all workers that hashes",
            "Above a half, log-ins starve everything else.",
            "percentunit",
            "lines",
            {"hashing": "hash_share"},
            width=8,
        ),
        Panel(
            "Cost of new passwords",
            "Rounds, or log2 of n for scrypt; old passwords keep theirs until changed.",
            "short",
            "stat",
            {"{{keystone_password_hash_algorithm}}": "hash_cost"},
            width=6,
        ),
        Panel(
            "Fernet keys",
            "To decrypt a token all of them may be tried.",
            "short",
            "stat",
            {"{{keystone_fernet_repository}}": "keys"},
            width=6,
        ),
        Panel(
            "Age of the primary key",
            "Workers that differ have not got the same keys.",
            "s",
            "stat",
            {"{{keystone_fernet_repository}}": "key_age"},
            width=6,
        ),
        Panel(
            "Choices that decide",
            "How many workers run with which; more than one row is a half-done change.",
            "short",
            "table",
            {"workers": "configuration"},
            width=6,
        ),
    ),
)

OWN: Final = Row(
    "Keylag itself",
    (
        Panel(
            "Sources that deliver",
            "1 is well; 0 means that panels of this source show nothing new.",
            "short",
            "lines",
            {"{{instance}} {{source}}": "source_success"},
            width=8,
        ),
        Panel(
            "Time of a scrape",
            "Near the time-out, ask less often or allow more.",
            "s",
            "lines",
            {"{{source}}": "source_seconds"},
            width=8,
        ),
        Panel(
            "Faults and failures",
            "Faults are exceptions inside Keylag that did not reach Keystone.",
            "ops",
            "lines",
            {
                "{{source}} {{reason}}": "source_failures",
                "fault in {{keylag_seam}}": "faults",
            },
            width=8,
            empty_reason="Keylag has no faults",
            empty_legends=("fault in {{keylag_seam}}",),
        ),
    ),
)

BOARD: Final = Board(
    name="workers",
    title="Keylag / Workers and host",
    purpose="Whether a worker is free, and what the busy ones do.",
    queries=QUERIES,
    variables=("job", "instance", "exporter"),
    rows=(WORKERS, SERVER, HASHING, OWN),
)
