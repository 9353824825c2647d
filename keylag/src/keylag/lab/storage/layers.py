"""Where the time of a read from a slow device goes, layer by layer."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from keylag.lab import mounts
from keylag.lab.iproute import LabError
from keylag.lab.storage import fio
from keylag.lab.storage.devices import Device
from keylag.lab.storage.lab import StorageLab

SECONDS: Final = 5
MICROSECONDS: Final = 1e6


@dataclass(frozen=True)
class Layer:
    """A layer that a read passes."""

    name: str
    seconds: float
    """Mean time of a read, with all layers below."""
    self_seconds: float
    """The same without the layers below."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return asdict(self)


def measure(lab: StorageLab) -> list[Layer]:
    """Return the layers from the file system down; raises LabError.

    Each is read by itself with 4 kB, one read after the other.
    """
    delays = lab.options().delays_seconds
    if len(delays) != 1:
        message = (
            "Layers are measured on one device. "
            "Run `keylag lab storage set --delay 5ms` first."
        )
        raise LabError(message)
    device = Device(lab.folder, 0, delays[0])
    (loop,) = mounts.attached(lab.folder / "devices")
    file = fio.read_seconds(device.image, direct=False, seconds=SECONDS)
    times = {
        "file system": fio.read_seconds(lab.device / fio.FILE, seconds=SECONDS),
        "loop device": fio.read_seconds(Path(loop), seconds=SECONDS),
        "FUSE and nbdkit": fio.read_seconds(device.served, seconds=SECONDS),
        "delay": device.delay_seconds + file,
        "file in memory": file,
    }
    return list(_layers(times))


def _layers(times: dict[str, float]) -> Iterator[Layer]:
    pairs = pairwise([*times.items(), ("", 0.0)])
    for (name, seconds), (_, below) in pairs:
        yield Layer(name, seconds, max(seconds - below, 0.0))


def folded(layers: Sequence[Layer]) -> str:
    """Return the layers as folded stacks, which programs for flame graphs read.

    A line has the layers from the top, and the self time of the last in microseconds.
    """
    names = [one.name for one in layers]
    return "".join(
        f"{';'.join(names[: number + 1])} {round(one.self_seconds * MICROSECONDS)}\n"
        for number, one in enumerate(layers)
    )
