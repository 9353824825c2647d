"""The hot path in Python: code that runs in every request, often many times.

``native/`` is the same in C, file by file, and costs less; it is used where it was
compiled.  This documentation holds for both, and both pass the same tests.
"""

from keylag_otel.pure.aggregate import Aggregate
from keylag_otel.pure.aggregator import Aggregator
from keylag_otel.pure.context_managers import wrap_context_manager
from keylag_otel.pure.hooks import (
    count_bytes_received,
    count_cache_get,
    count_memoized_call,
    count_statement,
    mark_miss,
    record_statement,
)
from keylag_otel.pure.request_timer import (
    Callbacks,
    RequestTimer,
    activate,
    current_timer,
    deactivate,
    process_generation,
    set_time_source,
    start_timer,
    timer_var,
)
from keylag_otel.pure.wrapper import set_fault_handler, wrap, wrap_cache_call

#: Report an exception of Keylag's own code to the fault handler.
report_fault = Callbacks.report_fault

__all__ = [
    "Aggregate",
    "Aggregator",
    "RequestTimer",
    "activate",
    "count_bytes_received",
    "count_cache_get",
    "count_memoized_call",
    "count_statement",
    "current_timer",
    "deactivate",
    "mark_miss",
    "process_generation",
    "record_statement",
    "report_fault",
    "set_fault_handler",
    "set_time_source",
    "start_timer",
    "timer_var",
    "wrap",
    "wrap_cache_call",
    "wrap_context_manager",
]
