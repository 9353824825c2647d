"""File systems of storage nodes, each in a file behind a loop device."""

import shutil
from pathlib import Path
from typing import Final

from keylag.lab import mounts
from keylag.lab.iproute import run

SIZE_BYTES: Final = 256 * 1024**2
NAME: Final = "d1"
"""Of the one device of a node."""


def make_device(folder: Path) -> None:
    """Mount a new, empty file system at `folder`/d1; raises LabError or OSError."""
    target = folder / NAME
    target.mkdir(parents=True, exist_ok=True)
    image = folder / f"{NAME}.img"
    mounts.make_image(image, SIZE_BYTES)
    mounts.make_ext4(image)
    run("mount", "-o", "loop,noatime", str(image), str(target))


def remove_devices(folder: Path) -> None:
    """Unmount and delete all devices below a folder; raises LabError or OSError."""
    mounts.release(folder)
    shutil.rmtree(folder, ignore_errors=True)
