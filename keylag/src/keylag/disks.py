"""Disks of this machine."""

import os
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError

BLOCK_DEVICES: Final = Path("/sys/dev/block")


class NoDiskError(KeylagError):
    """A folder is on no disk of this machine."""


def find_disk(folder: Path) -> Path:
    """Return the whole disk with a folder, below /sys; raises NoDiskError."""
    device = folder.stat().st_dev
    place = BLOCK_DEVICES / f"{os.major(device)}:{os.minor(device)}"
    if not place.exists():
        message = f"{folder} is on no block device. Choose a folder on a disk."
        raise NoDiskError(message)
    found = place.resolve()
    return found.parent if (found / "partition").exists() else found


def disk_number(disk: Path) -> str:
    """Return MAJOR:MINOR of a disk below /sys; raises OSError."""
    return (disk / "dev").read_text().strip()
