"""File systems of storage nodes, each in a file behind a loop device."""

import os
import shutil
from pathlib import Path
from typing import Final

from keylag.lab.iproute import run

SIZE_BYTES: Final = 256 * 1024**2
NAME: Final = "d1"
"""Of the one device of a node."""
MOUNTS: Final = Path("/proc/self/mounts")


def make_device(folder: Path) -> None:
    """Mount a new, empty file system at `folder`/d1; raises LabError or OSError."""
    target = folder / NAME
    target.mkdir(parents=True, exist_ok=True)
    image = folder / f"{NAME}.img"
    with image.open("wb") as stream:
        stream.truncate(SIZE_BYTES)
    # At once, or the kernel would write the rest while calls are measured.
    at_once = "lazy_itable_init=0,lazy_journal_init=0"
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", at_once, str(image))
    run("mount", "-o", "loop,noatime", str(image), str(target))


def remove_devices(folder: Path) -> None:
    """Unmount and delete all devices below a folder; raises LabError or OSError."""
    below = f"{folder.resolve()}{os.sep}"
    for line in MOUNTS.read_text(encoding="utf-8").splitlines():
        target = line.split(" ")[1]
        if target.startswith(below):
            run("umount", target)
    shutil.rmtree(folder, ignore_errors=True)
