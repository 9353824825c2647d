"""The key repository on a file system that is slow to read."""

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from keylag.faults.model import FaultError
from keylag.tools import find_program

if TYPE_CHECKING:
    from keylag.faults.site import Site

FOLDER: Final = "fault-slow-keys"
PAGE_BYTES: Final = 4096
"""What the kernel reads of a small file."""
PROCESS: Final = "fault-slow-keys"
"""The name by which `keylag down` finds bindfs."""
ADVICE: Final = "Install Debian's package bindfs."


@dataclass(frozen=True)
class SlowKeys:
    """The stack's Fernet keys, shown by bindfs in the stack's folder."""

    reads_per_second: float
    """Of keys, by all workers together; bindfs lets a burst of 0.2 s pass."""

    def apply(self, site: "Site") -> None:
        """Mount the folder; raises FaultError, and ToolError without bindfs."""
        folder = site.folder / FOLDER
        folder.mkdir(exist_ok=True)
        rate = max(1, round(PAGE_BYTES * self.reads_per_second))
        bindfs = find_program("bindfs", ADVICE)
        try:
            subprocess.run(
                [bindfs, f"--read-rate={rate}", site.fernet_keys, folder],
                env=site.environment(PROCESS),
                check=True,
                capture_output=True,
                text=True,
            )
        except subprocess.CalledProcessError as error:
            message = (
                f"bindfs could not mount {folder}: {error.stderr.strip()} It needs "
                "/dev/fuse, and root or the program fusermount."
            )
            raise FaultError(message) from error

    def undo(self, site: "Site") -> None:
        """Unmount the folder and delete it; bindfs ends with it."""
        folder = site.folder / FOLDER
        for command in ("umount", "-l"), ("fusermount", "-uz"):
            with suppress(OSError):
                subprocess.run([*command, folder], capture_output=True, check=False)
        with suppress(FileNotFoundError):
            folder.rmdir()
