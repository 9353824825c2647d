"""A link by the kernel's queueing discipline netem, where the kernel has it."""

import math

from keylag.lab.direction import BITS_PER_BYTE
from keylag.lab.iproute import LabError, run
from keylag.lab.link import Link
from keylag.lab.network import MTU_BYTES, WAN_INTERFACE

UNLIMITED_PACKETS = 100_000
"""Packets on their way through a link without a rate."""


def has_netem(namespace: str) -> bool:
    """Return whether the kernel has netem, by trying it in a namespace."""
    try:
        run(*_replace(namespace, "lo", ["limit", "1000"]))
        run("tc", "-n", namespace, "qdisc", "delete", "dev", "lo", "root")
    except LabError:
        return False
    return True


def connect(first: str, second: str) -> None:
    """Join the namespaces of two routers; raises LabError."""
    name = WAN_INTERFACE
    peer = ["peer", "name", name, "netns", second]
    run("ip", "-n", first, "link", "add", name, "type", "veth", *peer)


def apply_link(namespace: str, link: Link) -> None:
    """Let what a router sends to the other site pass a link; raises LabError."""
    run(*_replace(namespace, WAN_INTERFACE, arguments(link)))


def arguments(link: Link) -> list[str]:
    """Return the arguments of netem for one direction of a link."""
    rate = link.rate_bits_per_second
    packets_per_second = rate / BITS_PER_BYTE / MTU_BYTES
    waiting = packets_per_second * (link.delay_seconds + link.queue_seconds)
    limit = math.ceil(waiting) + 1 if rate else UNLIMITED_PACKETS
    return [
        *("limit", str(limit)),
        *("delay", _microseconds(link.delay_seconds)),
        _microseconds(link.jitter_seconds / 2),
        *("loss", f"{100 * link.loss_ratio:g}%"),
        *(("rate", f"{rate:.0f}bit") if rate else ()),
    ]


def _replace(namespace: str, interface: str, netem: list[str]) -> list[str]:
    qdisc = ["qdisc", "replace", "dev", interface, "root", "netem"]
    return ["tc", "-n", namespace, *qdisc, *netem]


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"
