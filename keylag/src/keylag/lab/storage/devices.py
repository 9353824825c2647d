"""Block devices whose reads and writes take longer.

    file <- nbdkit's delay filter <- nbdfuse <- loop device <- file system

The kernel needs neither NBD nor the device mapper for it, only FUSE.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag import processes
from keylag.lab import mounts
from keylag.lab.iproute import LabError, run
from keylag.services.base import inherited_environment
from keylag.tools.tool import tail

SIZE_BYTES: Final = 1024**3
"""Of a device; its file takes what is written."""
SERVICE: Final = "nbdfuse"
"""The name of its process."""
START_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Device:
    """A device that a laboratory makes of a file."""

    lab: Path
    number: int
    delay_seconds: float

    @property
    def image(self) -> Path:
        """The file with its data."""
        return self.lab / "devices" / f"{self.number}.img"

    @property
    def served(self) -> Path:
        """The file through which the same data come late."""
        return self.lab / "devices" / f"{self.number}.served" / "nbd"

    @property
    def log(self) -> Path:
        """The log of the processes between the two."""
        return self.lab / "logs" / f"{SERVICE}-{self.number}.log"

    def serve(self) -> None:
        """Start what delays the data; raises LabError or OSError."""
        self.served.parent.mkdir(parents=True, exist_ok=True)
        delay = f"{round(self.delay_seconds * 1000)}ms"
        # As an argument of nbdfuse, nbdkit ends with it.
        nbdkit: list[str | Path] = [
            *("nbdkit", "--exit-with-parent", "--filter=delay", "file", self.image),
            *(f"rdelay={delay}", f"wdelay={delay}"),
        ]
        environment = {
            **inherited_environment(),
            **processes.stack_variables(self.lab, SERVICE),
        }
        processes.start_server(
            ["nbdfuse", self.served, "[", *nbdkit, "]"], environment, self.log
        )
        deadline = time.monotonic() + START_SECONDS
        while not self.served.exists():
            if time.monotonic() > deadline:
                end = tail(self.log)
                message = f"{self.served} did not appear. The end of {self.log}:\n{end}"
                raise LabError(message)
            time.sleep(POLL_SECONDS)


def mount_filled(
    devices: Sequence[Device], target: Path, fill: Callable[[Path], None]
) -> None:
    """Mount new devices at a folder, into which `fill` writes.

    One device has ext4; two have btrfs with all data on both (RAID 1).  They are filled
    before they become slow.  Raises LabError or OSError, and what `fill` raises.
    """
    for one in devices:
        mounts.make_image(one.image, SIZE_BYTES)
    _mount([one.image for one in devices], target, new=True)
    if len(devices) > 1:
        # Without it, each write of a page would go to a new place.
        run("chattr", "+C", str(target))
    fill(target)
    mounts.release(devices[0].lab)
    for one in devices:
        one.serve()
    _mount([one.served for one in devices], target)


def _mount(files: Sequence[Path], target: Path, *, new: bool = False) -> None:
    attached = [mounts.attach(one) for one in files]
    if new and len(attached) == 1:
        mounts.make_ext4(attached[0])
    elif new:
        copies = ("-d", "raid1", "-m", "raid1")
        run("mkfs.btrfs", "--quiet", "--force", *copies, *map(str, attached))
    mounts.mount(attached, target)


def remove_devices(lab: Path) -> None:
    """Unmount and delete all devices of a laboratory; raises LabError or OSError."""
    mounts.release(lab)
    processes.stop_processes(processes.find_processes(stack=lab, service=SERVICE))
    shutil.rmtree(lab / "devices", ignore_errors=True)
