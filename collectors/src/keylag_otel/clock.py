"""The stopwatch of one request, and the calls that turn it.

There is no stack of spans: at any moment exactly one cell is running, and the
call stack itself remembers which cell to go back to.  Each turn reads the
clock once and books the time since the last turn, so the cells add up to
the wall time by construction, whatever is raised or abandoned in between.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from keylag_otel import environment
from keylag_otel.model import cell_of

LOG = logging.getLogger("keylag_otel")

#: Why calls are watched in Python although the part in C was compiled, if that could
#: not be loaded: it refuses an interpreter that is not the process's main one.
REFUSED: str | None = None

if TYPE_CHECKING or environment.pure_python():
    from keylag_otel import pure as half
else:
    try:
        half = import_module("keylag_otel._watch")
    except ModuleNotFoundError:
        from keylag_otel import pure as half
    except ImportError as error:
        from keylag_otel import pure as half

        REFUSED = str(error)
        LOG.warning("keylag watches calls in Python, which costs more: %s", REFUSED)

#: The module that all of these are from.
HALF = half

Clock = half.Clock
Sums = half.Sums
Totals = half.Totals
active = half.active
asked = half.asked
computed = half.computed
executed = half.executed
got = half.got
looked_up = half.looked_up
memoized = half.memoized
process_number = half.process_number
read_with = half.read_with
received = half.received
stated = half.stated
tell_faults = half.tell_faults
watch = half.watch
watch_body = half.watch_body

#: Whether these are the ones in C.
COMPILED = half.__name__ == "keylag_otel._watch"

#: What is counted beside time; an index into ``Clock.counts``.
COUNTS = ("sql_statements", "cache_calls")

#: Until Keystone's own code is reached, a request is the web framework's.
START = cell_of("wsgi", "other")

#: Return the clock of the request that this thread works on, or None.
current = half.running

_OTHER = "_OTHER"
_METHODS = {
    name: name
    for name in (
        *("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"),
        "TRACE",
    )
}

#: Return the clock of a request that starts now, ``start(environ)``.
start = partial(half.begun, _METHODS, _OTHER, START, len(COUNTS))


def known_method(method: str) -> str:
    """Return the method, or `_OTHER`: a client may send any text as one."""
    return _METHODS.get(method, _OTHER)
