"""The request timer and its wrappers and hooks, from the native or the pure part.

At any moment exactly one cell is current.  Each wrapper keeps the previous cell in
its own frame and switches back to it, so there is no stack of spans.  Each switch
reads the clock once and adds the time since the last switch to the current cell:
the cells add up to the wall time, whatever is raised or abandoned in between.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from keylag_otel import environment
from keylag_otel.model import cell_of

LOG = logging.getLogger("keylag_otel")

#: Why the native part was not loaded although it was compiled; it refuses to load in a
#: subinterpreter.
NATIVE_IMPORT_ERROR: str | None = None

if TYPE_CHECKING or environment.pure_python():
    from keylag_otel import pure as hot_path
else:
    try:
        hot_path = import_module("keylag_otel._native")
    except ModuleNotFoundError:
        from keylag_otel import pure as hot_path
    except ImportError as error:
        from keylag_otel import pure as hot_path

        NATIVE_IMPORT_ERROR = str(error)
        LOG.warning(
            "keylag times calls in Python, which costs more than in C: %s",
            NATIVE_IMPORT_ERROR,
        )

#: The module that these names are from.
HOT_PATH = hot_path

RequestTimer = hot_path.RequestTimer
Aggregator = hot_path.Aggregator
Aggregate = hot_path.Aggregate
timer_var = hot_path.timer_var
wrap_cache_call = hot_path.wrap_cache_call
mark_miss = hot_path.mark_miss
count_statement = hot_path.count_statement
count_cache_get = hot_path.count_cache_get
count_memoized_call = hot_path.count_memoized_call
process_generation = hot_path.process_generation
set_time_source = hot_path.set_time_source
count_bytes_received = hot_path.count_bytes_received
record_statement = hot_path.record_statement
set_fault_handler = hot_path.set_fault_handler
wrap = hot_path.wrap
wrap_context_manager = hot_path.wrap_context_manager

#: Whether the native part is loaded.
IS_NATIVE = hot_path.__name__ == "keylag_otel._native"

#: The names of ``RequestTimer.counts``, by index.
COUNTS = ("sql_statements", "cache_calls")

#: A request starts in the web framework, before Keystone's own code.
INITIAL_CELL = cell_of("wsgi", "other")

#: Return the timer of the request that this thread works on, or None.
current_timer = hot_path.current_timer

_OTHER = "_OTHER"
_METHODS = {
    name: name
    for name in (
        *("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"),
        "TRACE",
    )
}

#: ``start_timer(environ)`` returns the timer of a request that starts now.
start_timer = partial(hot_path.start_timer, _METHODS, _OTHER, INITIAL_CELL, len(COUNTS))


def method_label(method: str) -> str:
    """Return a standard HTTP method unchanged, any other text as `_OTHER`."""
    return _METHODS.get(method, _OTHER)
