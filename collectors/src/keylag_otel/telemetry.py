"""Start and stop the export of metrics and traces in each worker.

Exporter threads do not survive a fork, so each worker starts its own: after the
fork, or with its first request, whichever comes first.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from threading import RLock
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from keylag_otel import environment, gauges, instruments, meter_provider, process
from keylag_otel.appended_histogram import SCOPE
from keylag_otel.auth_token import recording
from keylag_otel.call_histograms import CallHistograms
from keylag_otel.duration_histogram import DurationHistogram
from keylag_otel.instrument_factory import (
    create_gauges,
    create_histogram,
    create_observable,
    create_request_counters,
)
from keylag_otel.log_rate_limit import remove_log_filters
from keylag_otel.request_aggregator import AGGREGATOR
from keylag_otel.request_timer import COUNTS, process_generation
from keylag_otel.shutdown import FlushAtExit
from keylag_otel.traces import tracing
from keylag_otel.version import __version__

LOG = logging.getLogger("keylag_otel")


class _State:
    """State of this process; forked children inherit it."""

    #: `process_generation` of the process whose exports were started.
    generation: int | None = None
    provider: MeterProvider | None = None
    #: The global provider when Keystone was instrumented, and the process id then.
    provider_at_start: tuple[Any, int] = (None, 0)
    starting = RLock()
    #: The process id of the last fork that Python was notified of.
    notified_pid: int | None = None


def use_provider(given: MeterProvider | None) -> None:
    """Use this provider in all processes, instead of one from the variables."""
    _State.provider = given
    _State.provider_at_start = (metrics.get_meter_provider(), os.getpid())
    _State.generation = None


def stop() -> None:
    """Flush and shut down the exports of this process, and undo their set-up."""
    FlushAtExit.close_all()
    remove_log_filters()
    tracing.State.tracing = None
    tracing.use_provider(None)
    use_provider(None)


def start_once_per_process() -> None:
    """Start the metrics and traces of this process, once; never raises."""
    generation = process_generation()
    if _State.generation == generation:
        return
    # Other threads wait, because starting resets the aggregator.
    with _State.starting:
        if _State.generation != generation:
            _start()
            _State.generation = generation


def _start() -> None:
    try:
        AGGREGATOR.reset()
        _create_instruments(_State.provider or _global_provider())
    except Exception:
        LOG.warning("keylag cannot export metrics", exc_info=True)
    try:
        tracing.start()
    except Exception:
        LOG.warning("keylag cannot export traces", exc_info=True)


def _create_instruments(given: MeterProvider | None) -> None:
    durations = DurationHistogram(instruments.REQUEST_DURATION, AGGREGATOR)
    calls = CallHistograms(AGGREGATOR)
    is_ours = given is None and not environment.uses_delta_temporality()
    appended = (durations.append_to, calls.append_to) if is_ours else ()
    chosen = given or meter_provider.build(appended) or metrics.NoOpMeterProvider()
    meter = metrics.get_meter(SCOPE, __version__, chosen)
    if is_ours:
        AGGREGATOR.reset(record_exemplar=durations.record_exemplar)
    else:
        AGGREGATOR.reset(create_histogram(meter, instruments.REQUEST_DURATION))
    create_request_counters(
        meter, AGGREGATOR, instruments.PHASE_TIME, instruments.COUNTERS
    )
    for name in COUNTS:
        create_observable(
            meter,
            instruments.REQUEST_COUNTERS[name],
            partial(AGGREGATOR.request_counts, name),
        )
    create_gauges(meter, instruments.GAUGES, gauges.CALLBACKS)
    for name, read in process.CALLBACKS.items():
        create_observable(meter, instruments.PROCESS[name], read)
    recording.create_instruments(meter)


def _global_provider() -> MeterProvider | None:
    """Return the global provider if the deployer set it in this process, else None.

    A provider from before the fork has no threads in this worker, and all workers
    would share its instance id.
    """
    found = metrics.get_meter_provider()
    if not hasattr(found, "force_flush"):
        return None
    early, pid = _State.provider_at_start
    if found is early and pid != os.getpid():
        _log_ignored_provider()
        return None
    return found


def _log_ignored_provider() -> None:
    LOG.info(
        "keylag uses its own meter provider, configured by the OTEL_* variables: the "
        "global one was set before the server forked this worker. To use a global "
        "one, set it after the fork, or pass it to "
        "KeystoneInstrumentor().instrument(meter_provider=...)"
    )
    if _State.notified_pid != os.getpid():
        LOG.warning(
            "this worker was forked without Python's fork hooks: the threads of "
            "OpenTelemetry are missing, and the worker will wait half a minute for "
            "them at exit; set `py-call-osafterfork = true` in uWSGI"
        )


def _after_fork() -> None:
    # A thread that is not in this child may have held the lock.
    _State.starting = RLock()
    _State.notified_pid = os.getpid()


os.register_at_fork(after_in_child=_after_fork)
