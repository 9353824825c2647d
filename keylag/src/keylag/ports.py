"""Allocates the ports of a stack; a stack keeps its ports."""

import socket
from collections.abc import Iterable, Mapping
from random import SystemRandom

import psutil

from keylag.errors import KeylagError
from keylag.services.base import HOST

PORT_RANGE = range(20000, 32000)
"""Below the ephemeral ports that Linux assigns to outgoing connections."""
STACK_ADVICE = (
    "Stop that process, or move the stack with `keylag up --new-ports` and source its "
    "openrc again."
)


class PortTakenError(KeylagError):
    """Another process uses a port of the stack."""


def allocate_ports(
    names: Iterable[str], previous: Mapping[str, int], advice: str = STACK_ADVICE
) -> dict[str, int]:
    """Return a port for each name: its previous one, or a free one.

    Previous ports are never replaced, because shells that sourced openrc keep sending
    passwords there.  Raises PortTakenError, with the advice, if another process uses
    one.
    """
    ports = {name: previous[name] for name in names if name in previous}
    taken = [
        f"Port {port} ({name}) is in use by {_describe_owner(port)}."
        for name, port in ports.items()
        if not _is_free(port)
    ]
    if taken:
        raise PortTakenError("\n".join([*taken, advice]))
    for name in names:
        if name not in ports:
            ports[name] = free_port(ports.values())
    return ports


def free_port(taken: Iterable[int]) -> int:
    """Return a port that no process uses and that is not among `taken`."""
    candidates = set(PORT_RANGE) - set(taken)
    random = SystemRandom()
    while not _is_free(port := random.choice(tuple(candidates))):
        candidates.remove(port)
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _describe_owner(port: int) -> str:
    pids = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.laddr and connection.laddr.port == port and connection.pid
    }
    names = " and ".join(map(_describe_process, sorted(pids)))
    return (
        names or f"another user's process; `sudo ss -ltnp sport = :{port}` shows which"
    )


def _describe_process(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"{process.name()} (pid {pid}, user {process.username()})"
    except psutil.Error:
        return f"pid {pid}"
