"""Block devices whose reads and writes take longer.

    file <- nbdkit's delay filter <- nbdfuse <- loop device <- file system

The kernel needs neither NBD nor the device mapper for it, only FUSE.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.lab import mounts
from keylag.lab.iproute import run
from keylag.lab.server import LabServer
from keylag.lab.storage.options import MOST_DEVICES

SIZE_BYTES: Final = 1024**3
"""Of a device; its file takes what is written."""
START_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Device(LabServer):
    """A device that a laboratory makes of a file; its server delays the data."""

    number: int
    delay_seconds: float = 0.0

    @property
    def service(self) -> str:
        """The name of its process."""
        return f"nbdfuse-{self.number}"

    @property
    def image(self) -> Path:
        """The file with its data."""
        return self.lab / "devices" / f"{self.number}.img"

    @property
    def served(self) -> Path:
        """The file through which the same data come late."""
        return self.lab / "devices" / f"{self.number}.served" / "nbd"

    def serve(self) -> None:
        """Start what delays the data; raises LabError or OSError."""
        self.served.parent.mkdir(parents=True, exist_ok=True)
        delay = f"{round(self.delay_seconds * 1000)}ms"
        # As an argument of nbdfuse, nbdkit ends with it.
        nbdkit = [
            *("nbdkit", "--exit-with-parent", "--filter=delay"),
            *("file", str(self.image), f"rdelay={delay}", f"wdelay={delay}"),
        ]
        self.start_command(["nbdfuse", str(self.served), "[", *nbdkit, "]"], {})
        self.wait_until(self.served.exists, START_SECONDS)


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
    for number in range(MOST_DEVICES):
        Device(lab, number).stop()
    shutil.rmtree(lab / "devices", ignore_errors=True)
