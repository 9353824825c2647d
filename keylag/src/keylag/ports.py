"""The ports of a stack: chosen once, then kept."""

import socket
from collections.abc import Iterable, Mapping
from random import SystemRandom

import psutil

from keylag.errors import KeylagError
from keylag.services.base import HOST

PORT_RANGE = range(20000, 32000)
"""Below the ports that Linux gives to outgoing connections, which come and go."""


class PortTakenError(KeylagError):
    """Another process has a port of the stack; the text says which process."""


def keep_ports(names: Iterable[str], before: Mapping[str, int]) -> dict[str, int]:
    """Return a port for each name: the one it had before, or a new one.

    A shell that has read openrc goes on sending passwords to the ports of before, so
    these are never replaced.  Raises PortTakenError if another process has one.
    """
    ports = {name: before[name] for name in names if name in before}
    taken = [
        f"Port {port} ({name}) is taken by {_owner(port)}."
        for name, port in ports.items()
        if not _is_free(port)
    ]
    if taken:
        advice = (
            "Stop it, or give the stack other ports with `keylag up --new-ports`, "
            "and then source its openrc again."
        )
        raise PortTakenError("\n".join([*taken, advice]))
    for name in names:
        if name not in ports:
            ports[name] = _new_port(ports.values())
    return ports


def _new_port(taken: Iterable[int]) -> int:
    candidates = set(PORT_RANGE) - set(taken)
    random = SystemRandom()
    while not _is_free(port := random.choice(tuple(candidates))):
        candidates.remove(port)
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A port that a server has just left is free, though TCP remembers it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _owner(port: int) -> str:
    """Name the process that has a port, as far as this user may know."""
    pids = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.laddr and connection.laddr.port == port and connection.pid
    }
    named = " and ".join(map(_named, sorted(pids)))
    return named or f"another user's process; `sudo ss -ltnp sport = :{port}` names it"


def _named(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"{process.name()} (pid {pid}, user {process.username()})"
    except psutil.Error:
        return f"pid {pid}"
