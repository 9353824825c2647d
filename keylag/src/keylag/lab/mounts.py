"""Files behind loop devices, and the file systems of a laboratory."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keylag.lab.iproute import run

MOUNTS: Final = Path("/proc/self/mounts")
AT_ONCE: Final = "lazy_itable_init=0,lazy_journal_init=0"
"""Of mkfs.ext4, or the kernel would write the rest while calls are measured."""


def make_image(path: Path, size_bytes: int) -> None:
    """Make an empty file for a file system, in place of one; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(size_bytes)


def make_ext4(path: Path) -> None:
    """Make a file system on a device or in a file; raises LabError."""
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", AT_ONCE, str(path))


def attach(path: Path) -> Path:
    """Return a new loop device of a file, past the page cache; raises LabError."""
    command = ("losetup", "--find", "--show", "--direct-io=on", str(path))
    return Path(run(*command).strip())


def mount(devices: Sequence[Path], target: Path) -> None:
    """Mount the file system of all devices at a new folder.

    Raises LabError or OSError.
    """
    target.mkdir(parents=True, exist_ok=True)
    first, *others = devices
    options = ",".join(["noatime", *(f"device={one}" for one in others)])
    run("mount", "-o", options, str(first), str(target))


def release(folder: Path) -> None:
    """Unmount what is mounted below a folder, and detach the loop devices of its files.

    A device in use goes with its file system, and the last file system goes first, so
    one may lie in another.  Raises LabError or OSError.
    """
    for device in attached(folder):
        run("losetup", "--detach", device)
    for target in reversed(_below(folder, _mounted())):
        run("umount", target)


def _mounted() -> list[str]:
    lines = MOUNTS.read_text(encoding="utf-8").splitlines()
    return [line.split(" ")[1] for line in lines]


def attached(folder: Path) -> list[str]:
    """Return the loop devices of the files below a folder; raises LabError."""
    found = run("losetup", "--list", "--json", "--output", "NAME,BACK-FILE")
    devices = json.loads(found)["loopdevices"] if found.strip() else []
    files = _below(folder, [one["back-file"] or "" for one in devices])
    return [one["name"] for one in devices if one["back-file"] in files]


def _below(folder: Path, paths: Sequence[str]) -> list[str]:
    below = f"{folder.resolve()}{os.sep}"
    return [one for one in paths if one.startswith(below)]
