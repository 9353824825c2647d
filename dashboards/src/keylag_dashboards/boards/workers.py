"""Dashboard *Workers and host*: free workers, and what busy ones do."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.workers import QUERIES

WORKERS: Final = Row(
    "Workers",
    (
        Panel(
            "Workers busy, by phase",
            "Wall time in seconds per second, all routes. sql, sql_pool, cache and"
            " ldap mostly wait; the other phases mostly use a CPU, or wait for one.",
            "short",
            "stacked",
            {"{{keystone_phase}}": "phases"},
        ),
        Panel(
            "Busy share of each worker",
            "Near 100 % in all workers: calls queue. Add processes or reduce work.",
            "percentunit",
            "lines",
            {"{{instance}}": "busy"},
            width=6,
        ),
        Panel(
            "Busiest routes",
            "Seconds per second. Token calls share their workers with these routes.",
            "short",
            "lines",
            {"{{http_request_method}} {{http_route}}": "routes"},
            width=6,
            drill_down=("tokens",),
        ),
        Panel(
            "CPU time of each worker",
            "Far below the busy share: the worker waits for servers or for a CPU.",
            "percentunit",
            "lines",
            {"{{instance}}": "cpu"},
            width=8,
        ),
        Panel(
            "Garbage collection",
            "Share of a worker's time, included in all phases. Above a few percent:"
            " memory has grown.",
            "percentunit",
            "lines",
            {"{{instance}}": "gc_share"},
            width=8,
        ),
        Panel(
            "Collections by generation",
            "Generation 2 examines all objects; frequent collections raise p99.",
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
            "No idle worker for long: calls wait before Keystone receives them.",
            "short",
            "stacked",
            {"{{state}}": "states"},
            width=8,
        ),
        Panel(
            "Waiting connections",
            "Time in this queue is part of no breakdown: no worker has started yet.",
            "short",
            "lines",
            {"waiting at {{socket}}": "queue", "limit": "queue_limit"},
            width=8,
        ),
        Panel(
            "Memory of each worker",
            "Steady growth is a leak; max-requests recycles workers.",
            "bytes",
            "lines",
            {"{{instance}} {{worker}}": "memory"},
            width=8,
        ),
        Panel(
            "Worker starts",
            "A worker starts with cold caches; frequent starts slow calls down.",
            "ops",
            "lines",
            {"{{instance}} {{worker}}": "starts"},
            width=8,
        ),
        Panel(
            "Queue full, requests killed, exceptions",
            "Each is a lost call. Add workers, or raise harakiri.",
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
            "Request time in uWSGI itself, such as reading bodies from slow clients.",
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
            "It doubles with each step of the cost, and rises on a busy CPU.",
            "s",
            "lines",
            {"mean": "hash_time"},
            width=8,
        ),
        Panel(
            "Share of worker time for hashing",
            "Above one half, log-ins delay all other calls.",
            "percentunit",
            "lines",
            {"hashing": "hash_share"},
            width=8,
        ),
        Panel(
            "Cost of new passwords",
            "Rounds, or log2(n) for scrypt. Old passwords keep theirs until changed.",
            "short",
            "stat",
            {"{{keystone_password_hash_algorithm}}": "hash_cost"},
            width=6,
        ),
        Panel(
            "Fernet keys",
            "Decrypting a token may try all of them.",
            "short",
            "stat",
            {"{{keystone_fernet_repository}}": "keys"},
            width=6,
        ),
        Panel(
            "Age of the primary key",
            "Different ages: workers have different keys.",
            "s",
            "stat",
            {"{{keystone_fernet_repository}}": "key_age"},
            width=6,
        ),
        Panel(
            "Configuration",
            "Workers by configuration. More than one row: a change is incomplete.",
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
            "Success of sources",
            "1: the last read succeeded. 0: panels of this source show old data.",
            "short",
            "lines",
            {"{{instance}} {{source}}": "source_success"},
            width=8,
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
    purpose="Load of the workers, queueing, password hashing, and Keylag itself.",
    queries=QUERIES,
    variables=("job", "instance", "exporter"),
    rows=(WORKERS, SERVER, HASHING, OWN),
)
