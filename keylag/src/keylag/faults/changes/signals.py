"""A server that is suspended, or stopped."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from keylag.processes import stop_processes

if TYPE_CHECKING:
    from keylag.faults.site import Site


@dataclass(frozen=True)
class Suspended:
    """A server that gets SIGSTOP: it accepts connections and never answers."""

    service: str

    def apply(self, site: "Site") -> None:
        """Send SIGSTOP."""
        for one in site.processes(self.service):
            with suppress(psutil.Error):
                one.process.suspend()

    def undo(self, site: "Site") -> None:
        """Send SIGCONT."""
        site.resume(self.service)


@dataclass(frozen=True)
class Stopped:
    """A server that is stopped: connections are refused."""

    service: str

    def apply(self, site: "Site") -> None:
        """Stop it."""
        stop_processes(site.processes(self.service))

    def undo(self, site: "Site") -> None:
        """Start it, if it does not run."""
        if not site.processes(self.service):
            site.restart(self.service)


@dataclass(frozen=True)
class MayBeSuspended:
    """A server that a helper suspends again and again; taking back resumes it."""

    service: str

    def apply(self, site: "Site") -> None:
        """Do nothing; the helper does it."""

    def undo(self, site: "Site") -> None:
        """Send SIGCONT."""
        site.resume(self.service)


@dataclass(frozen=True)
class RestartAfterwards:
    """A service that restarts when the fault ends.

    Keystone's workers avoid a cache server for five minutes once it has failed.
    """

    service: str

    def apply(self, site: "Site") -> None:
        """Do nothing yet."""

    def undo(self, site: "Site") -> None:
        """Restart it, unless the stack is about to stop."""
        if site.restarts:
            site.restart(self.service)
