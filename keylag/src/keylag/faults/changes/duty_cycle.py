"""A server that is suspended for a share of the time."""

from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.changes.signals import MayBeSuspended
from keylag.faults.model import Change


def suspend_in_slices(
    service: str, period_ms: float, stopped_percent: float
) -> Iterator[Change]:
    """Yield the changes: a helper sends SIGSTOP and SIGCONT in turn."""
    yield MayBeSuspended(service)
    cycle = {"period_ms": period_ms, "stopped_share": stopped_percent / 100}
    yield Helper("duty-cycle", {"service": service, **cycle})
