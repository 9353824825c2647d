"""Runs fio on the storage, and reads its figures."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from keylag.lab.iproute import LabError

FILE: Final = "fio.data"
SIZE_BYTES: Final = 64 * 1024**2
CHUNK_BYTES: Final = 1024**2
ACCESSES: Final = ("randread", "randwrite")
BLOCKS: Final = ("4k", "16k", "64k", "1M")
JOBS: Final = (1, 8, 64, 512)
SECONDS: Final = 3
MEASUREMENTS: Final = 1 + len(ACCESSES) * len(BLOCKS) * len(JOBS)
"""Of `flush` and `matrix` together."""
NANOSECOND: Final = 1e-9


@dataclass(frozen=True)
class Rate:
    """Random reads or writes of some jobs at the same time, past the page cache."""

    access: str
    """One of ACCESSES."""
    block: str
    """Size of each, such as `4k`."""
    jobs: int
    per_second: float
    mean_seconds: float
    p99_seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Flush:
    """A write of 4 kB that waits until it is on the disk, one after the other.

    So does a commit.
    """

    per_second: float
    write_seconds: float
    """Mean time of the write itself."""
    sync_seconds: float
    """Mean time of fdatasync."""
    sync_p99_seconds: float

    @property
    def seconds(self) -> float:
        """Mean time of both."""
        return self.write_seconds + self.sync_seconds

    def as_json(self) -> dict[str, float]:
        """Return the figures for JSON."""
        return {**asdict(self), "seconds": self.seconds}


def make_file(folder: Path) -> None:
    """Write the file that fio reads and writes, unless it is there; raises OSError.

    fio itself would write it slowly, or leave it without blocks on the disk.
    """
    path = folder / FILE
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for _ in range(SIZE_BYTES // CHUNK_BYTES):
            stream.write(os.urandom(CHUNK_BYTES))


def matrix(
    folder: Path,
    *,
    prefix: Sequence[str] = (),
    blocks: Sequence[str] = BLOCKS,
    jobs: Sequence[int] = JOBS,
    seconds: int = SECONDS,
) -> Iterator[Rate]:
    """Yield the rates of all accesses, blocks and jobs; raises LabError.

    `folder` has the file of `make_file`, and `prefix` is a command that runs another.
    """
    for access, block, number in product(ACCESSES, blocks, jobs):
        options = (f"--rw={access}", f"--bs={block}", f"--numjobs={number}")
        found = _run(folder / FILE, prefix, seconds, options)
        side = found["read" if access == "randread" else "write"]
        yield Rate(access, block, number, side["iops"], *_mean_and_p99(side["clat_ns"]))


def flush(folder: Path, *, prefix: Sequence[str] = (), seconds: int = SECONDS) -> Flush:
    """Return what a write takes that has to be on the disk; raises LabError."""
    options = ("--rw=write", "--bs=4k", "--fdatasync=1")
    found = _run(folder / FILE, prefix, seconds, options)
    write, _ = _mean_and_p99(found["write"]["clat_ns"])
    return Flush(found["write"]["iops"], write, *_mean_and_p99(found["sync"]["lat_ns"]))


def read_seconds(path: Path, *, direct: bool = True, seconds: int = SECONDS) -> float:
    """Return the mean time of a read of 4 kB of a file or device, one after the other.

    `direct` reads pass the page cache.  Raises LabError.
    """
    options = ("--rw=randread", "--bs=4k", "--readonly", f"--direct={direct:d}")
    mean, _ = _mean_and_p99(_run(path, (), seconds, options)["read"]["clat_ns"])
    return mean


def _mean_and_p99(nanoseconds: Mapping[str, Any]) -> tuple[float, float]:
    p99 = nanoseconds.get("percentile", {}).get("99.000000", 0)
    return nanoseconds["mean"] * NANOSECOND, p99 * NANOSECOND


def _run(
    path: Path, prefix: Sequence[str], seconds: int, options: Sequence[str]
) -> Mapping[str, Any]:
    command = [
        *(*prefix, "fio", "--name=keylag", "--output-format=json"),
        *(f"--filename={path}", f"--size={SIZE_BYTES}", "--direct=1"),
        *("--ioengine=psync", "--thread", "--group_reporting"),
        *("--time_based", f"--runtime={seconds}", *options),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        # Warnings may stand before the document.
        document = json.loads(ended.stdout[ended.stdout.index("{") :])
        (job,) = document["jobs"]
    except (ValueError, KeyError) as error:
        reason = ended.stderr.strip() or f"exit code {ended.returncode}"
        message = f"fio could not measure {path}: {reason}"
        raise LabError(message) from error
    if job["error"]:
        message = f"fio failed in {path}: {os.strerror(job['error'])}."
        raise LabError(message)
    found: Mapping[str, Any] = job
    return found
