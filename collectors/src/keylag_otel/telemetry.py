"""The way out: metrics and traces from each worker, by OpenTelemetry's own variables.

Nothing may be started before a server forks its workers: exporter threads do
not survive a fork.  So each process starts its own, when it is told that it is
a new process or when its first request arrives, whichever comes first.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from threading import RLock
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from keylag_otel import environment, gauges, instruments, process, provider
from keylag_otel.auth_token import recording
from keylag_otel.clock import COUNTS, process_number
from keylag_otel.durations import Durations
from keylag_otel.farewell import Farewell
from keylag_otel.ledger import LEDGER
from keylag_otel.metering import (
    histogram,
    observe,
    observe_ledger,
    observe_readings,
)
from keylag_otel.seldom import hear_all
from keylag_otel.traces import tracing
from keylag_otel.version import __version__

LOG = logging.getLogger("keylag_otel")

_SCOPE = "keylag_otel"


class _Process:
    """Which process was started, and with which provider."""

    number: int | None = None
    provider: MeterProvider | None = None
    #: The global provider when Keystone was instrumented, and in which process.
    early: tuple[Any, int] = (None, 0)
    starting = RLock()
    #: The process that Python itself was told has been forked.
    told: int | None = None


def use(given: MeterProvider | None) -> None:
    """Use this provider in every process, instead of what the variables say."""
    _Process.provider = given
    _Process.early = (metrics.get_meter_provider(), os.getpid())
    _Process.number = None


def stop() -> None:
    """End this process's own exports, as if it had not been instrumented."""
    Farewell.close_all()
    hear_all()
    tracing.Process.tracing = None
    tracing.use(None)
    use(None)


def start_once_per_process() -> None:
    """Start this process's metrics and traces, once; never raises."""
    number = process_number()
    if _Process.number == number:
        return
    # Requests of other threads wait, lest the ledger forgets what they add.
    with _Process.starting:
        if _Process.number != number:
            _start()
            _Process.number = number


def _start() -> None:
    try:
        LEDGER.reset()
        _create_instruments(_Process.provider or _global_provider())
    except Exception:
        LOG.warning("keylag measures, but cannot export metrics", exc_info=True)
    try:
        tracing.start()
    except Exception:
        LOG.warning("keylag cannot export traces", exc_info=True)


def _create_instruments(given: MeterProvider | None) -> None:
    """Create them with a given provider, or one of our own."""
    durations = Durations(instruments.REQUEST_DURATION, _SCOPE, LEDGER)
    is_ours = given is None and not environment.wants_deltas()
    chosen = given or provider.build(durations.added_to if is_ours else None)
    meter = metrics.get_meter(_SCOPE, __version__, chosen)
    if is_ours:
        LEDGER.reset(exemplify=durations.exemplify)
    else:
        LEDGER.reset(histogram(meter, instruments.REQUEST_DURATION))
    observe_ledger(meter, LEDGER, instruments.PHASE_TIME, instruments.TALLIES)
    for name in COUNTS:
        observe(meter, instruments.COUNTERS[name], partial(LEDGER.count, name))
    observe_readings(meter, instruments.GAUGES, gauges.READ)
    for name, read in process.READ.items():
        observe(meter, instruments.PROCESS[name], read)
    recording.create(meter)


def _global_provider() -> MeterProvider | None:
    """Return what the deployer has set in this process, if anything.

    What was set before the server forked is left alone: its threads may not
    be here, and all workers would be one instance to the endpoint.
    """
    found = metrics.get_meter_provider()
    if not hasattr(found, "force_flush"):
        return None
    early, pid = _Process.early
    if found is early and pid != os.getpid():
        _say_alone()
        return None
    return found


def _say_alone() -> None:
    LOG.info(
        "keylag exports by itself, as the OTEL_* variables say: the global meter "
        "provider was set before the server forked this worker; to have it used, "
        "set it after the fork or give it to "
        "KeystoneInstrumentor().instrument(meter_provider=...)"
    )
    if _Process.told != os.getpid():
        LOG.warning(
            "this worker was forked without telling Python: OpenTelemetry's own "
            "threads are missing here, and the worker will wait half a minute for "
            "them when it ends; set `py-call-osafterfork = true` in uWSGI"
        )


def _forked() -> None:
    """Start over in a child; a lock may be held by a thread that is not here."""
    _Process.starting = RLock()
    _Process.told = os.getpid()


os.register_at_fork(after_in_child=_forked)
