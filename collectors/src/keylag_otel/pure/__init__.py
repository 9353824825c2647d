"""What runs in each request, and some of it a hundred times, in Python.

``native/`` is the same in C, file by file, and is used instead where it could be
compiled, since it costs less.  What is said here holds for both, and both pass the
same tests.
"""

from keylag_otel.pure.bodies import watch_body
from keylag_otel.pure.clock import (
    Clock,
    Hooks,
    activate,
    active,
    begun,
    deactivate,
    process_number,
    read_with,
    running,
)
from keylag_otel.pure.notes import (
    computed,
    executed,
    got,
    looked_up,
    memoized,
    received,
    stated,
)
from keylag_otel.pure.sums import Sums
from keylag_otel.pure.totals import Totals
from keylag_otel.pure.watched import asked, tell_faults, watch

#: Tell of what was raised while working on something of our own.
report_fault = Hooks.heard

__all__ = [
    "Clock",
    "Sums",
    "Totals",
    "activate",
    "active",
    "asked",
    "begun",
    "computed",
    "deactivate",
    "executed",
    "got",
    "looked_up",
    "memoized",
    "process_number",
    "read_with",
    "received",
    "report_fault",
    "running",
    "stated",
    "tell_faults",
    "watch",
    "watch_body",
]
