"""The qualities of storage that an experiment compares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from keylag.lab.iproute import LabError
from keylag.lab.link import format_duration
from keylag.lab.saved_options import SavedOptions

MOST_DEVICES: Final = 2
FLUSHES: Final = {
    1: "each commit waits until it is on the disk",
    2: "each second; a commit waits until the kernel has it",
    0: "each second; a commit waits for nothing",
}
"""Values of innodb_flush_log_at_trx_commit: when the log goes to the disk."""


@dataclass(frozen=True)
class StorageOptions(SavedOptions):
    """Where the database's files are, and what its commits wait for."""

    FILE: ClassVar = "storage.json"
    LABORATORY: ClassVar = "storage"
    NOTHING: ClassVar = "No database on chosen storage"

    delays_seconds: Sequence[float] = ()
    """What each read and write of a device takes longer, in whole milliseconds.

    One for each device; two have the same data, and a write waits for both.  Without
    one, the files are on the machine's own disk.
    """
    writes_per_second: int = 0
    """Limit of the database's writes; 0: without one."""
    flush: int = 1
    """A key of FLUSHES."""

    def check(self) -> None:
        """Raise LabError if the options exclude each other."""
        if self.writes_per_second and len(self.delays_seconds) > 1:
            message = (
                "The kernel limits the writes of one device. Choose one device, or no "
                "limit of the writes."
            )
            raise LabError(message)

    def __str__(self) -> str:
        """Return the options for users: `devices with 0 ms and 5 ms, flush 1`."""
        delays = " and ".join(map(format_duration, self.delays_seconds))
        names = {0: "own disk", 1: f"device with {delays}"}
        place = names.get(len(self.delays_seconds), f"devices with {delays}")
        limit = f", {self.writes_per_second} writes/s" if self.writes_per_second else ""
        return f"{place}{limit}, flush {self.flush}"
