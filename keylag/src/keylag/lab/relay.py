"""Carries the packets between two TUN devices, for kernels without netem.

    python -m keylag.lab.relay FOLDER DEVICE DEVICE

FOLDER has the link's settings, which SIGHUP reads again.
"""

import fcntl
import math
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from keylag.lab.direction import Direction
from keylag.lab.link import Link
from keylag.lab.network import MTU_BYTES
from keylag.lab.settings import read_link

TUN: Final = "/dev/net/tun"
SET_INTERFACE: Final = 0x400454CA
"""TUNSETIFF of the kernel's if_tun.h."""
PLAIN_PACKETS: Final = 0x1001
"""IFF_TUN and IFF_NO_PI: packets of IP without a header before them."""
PACKETS_AT_ONCE: Final = 64
"""Packets that are read before those that have arrived are passed on."""
PRIORITY: Final = -15
"""Nice value: a relay that waits for a CPU would be a longer link."""


def open_device(name: str) -> int:
    """Make a TUN device; it exists until the descriptor is closed.  Raises OSError."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(
        device, SET_INTERFACE, struct.pack("16sH22x", name.encode(), PLAIN_PACKETS)
    )
    return device


class Relay:
    """Passes packets from each of two devices to the other one."""

    def __init__(self, devices: Sequence[int], link: Link) -> None:
        first, second = devices
        self._from = {
            first: Direction(link, Random()),  # noqa: S311 - losses are no secret
            second: Direction(link, Random()),  # noqa: S311
        }
        self._to = {first: second, second: first}

    def change(self, link: Link) -> None:
        """Use other settings for what is sent from now on."""
        for direction in self._from.values():
            direction.change(link)

    def run(self) -> None:
        """Carry packets until the process ends."""
        while True:
            self._deliver()
            readable, _, _ = select.select(list(self._from), [], [], self._wait())
            for device in readable:
                self._receive(device)

    def _deliver(self) -> None:
        now = time.monotonic()
        for device, direction in self._from.items():
            for packet in direction.arrived(now):
                # A full queue or an interface that is down loses packets.
                with suppress(OSError):
                    os.write(self._to[device], packet)

    def _wait(self) -> float | None:
        """Return the seconds until the next packet arrives; None without one."""
        next_arrival = min(one.next_arrival for one in self._from.values())
        if math.isinf(next_arrival):
            return None
        return max(next_arrival - time.monotonic(), 0.0)

    def _receive(self, device: int) -> None:
        direction = self._from[device]
        now = time.monotonic()
        # Another error means that the device is gone, which ends the relay.
        with suppress(BlockingIOError):
            for _ in range(PACKETS_AT_ONCE):
                direction.send(os.read(device, MTU_BYTES), now)


def main() -> None:
    """Carry packets between two devices until SIGTERM."""
    folder, *names = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A change may follow as soon as the devices exist.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    relay = Relay([open_device(name) for name in names], read_link(Path(folder)))
    signal.signal(signal.SIGHUP, lambda *_: relay.change(read_link(Path(folder))))
    relay.change(read_link(Path(folder)))
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    relay.run()


if __name__ == "__main__":
    main()
