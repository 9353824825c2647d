"""Network namespaces, their interfaces and processes, by the programs of iproute2."""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from keylag.errors import KeylagError

NAMESPACES: Final = Path("/run/netns")
ADVICE: Final = "Network namespaces need root, and Debian's package iproute2."
FORWARD: Final = "echo 1 > /proc/sys/net/ipv4/ip_forward"
ONLY_IPV4: Final = (
    "cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0; echo 1 > all/disable_ipv6"
)
"""Without it, the kernel sends packets of its own."""


NO_PROXY: Final = {"NO_PROXY": "*", "no_proxy": "*"}
"""The environment of clients in a namespace, which has no way out to a proxy."""


class LabError(KeylagError):
    """A laboratory could not be started, changed or removed."""


def run(*command: str, text: str = "", advice: str = ADVICE) -> str:
    """Run a program and return what it prints; raises LabError if it fails.

    The advice is for a program that is missing.
    """
    try:
        ended = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False
        )
    except OSError as error:
        message = f"{command[0]} could not run: {error.strerror}. {advice}"
        raise LabError(message) from error
    if ended.returncode != 0:
        reason = ended.stderr.strip() or f"exit code {ended.returncode}"
        message = f"`{' '.join(command)}` failed: {reason}"
        raise LabError(message)
    return ended.stdout


def require_root(makes: str = "network namespaces") -> None:
    """Raise LabError for other users, who may not make what a laboratory is made of."""
    if os.geteuid() != 0:
        message = (
            f"A laboratory makes {makes}, which needs root: run the command with sudo. "
            "It changes nothing outside of them."
        )
        raise LabError(message)


def list_namespaces(prefix: str) -> list[str]:
    """Return the names of the namespaces that begin with a prefix."""
    return sorted(one.name for one in NAMESPACES.glob(f"{prefix}*"))


def add_namespace(name: str) -> None:
    """Make a namespace for IPv4 with a loopback interface; raises LabError."""
    run("ip", "netns", "add", name)
    run(*command_in(name, ["sh", "-c", ONLY_IPV4]))
    configure(name, ["link set lo up"])


def configure(namespace: str, lines: Iterable[str]) -> None:
    """Run lines of `ip` in a namespace; raises LabError."""
    run("ip", "-n", namespace, "-batch", "-", text="".join(f"{one}\n" for one in lines))


def forward_packets(namespace: str) -> None:
    """Let a namespace pass on packets that are not for itself; raises LabError."""
    run(*command_in(namespace, ["sh", "-c", FORWARD]))


def remove_namespace(name: str) -> None:
    """Remove a namespace and its interfaces; raises LabError."""
    run("ip", "netns", "delete", name)


def find_pids(namespace: str) -> list[int]:
    """Return the processes in a namespace; raises LabError."""
    return [int(one) for one in run("ip", "netns", "pids", namespace).split()]


def command_in(namespace: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs another one in a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def read_counters(namespace: str, interface: str) -> dict[str, Any]:
    """Return the counters of an interface by `rx` and `tx`; raises LabError."""
    (found,) = json.loads(
        run("ip", "-n", namespace, "-json", "-stats", "link", "show", interface)
    )
    counters: dict[str, Any] = found["stats64"]
    return counters
