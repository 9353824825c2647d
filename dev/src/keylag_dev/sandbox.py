"""Runs commands in bubblewrap, on this system or inside another Debian.

Commands have their own mount and process namespaces: when a command ends or is killed,
its mounts disappear and its processes end.
"""

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.state import state_folder

NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl")
"""Files of the host for name resolution and TLS."""

PROCESS_ISOLATION = ("--unshare-pid", "--die-with-parent")
ROOT_CAPABILITIES = ("--cap-add", "ALL")
"""Lets root mount, and change to another user as memcached does."""


def contained_command(command: Iterable[object]) -> list[str]:
    """Return the command that runs `command` with the host's files.

    It prevents that a mount outlives a killed command, and that `make clean` deletes
    the mounted files.  Other users than root mount in user namespaces anyway.
    """
    if os.geteuid() != 0:
        return [*map(str, command)]
    bwrap = (
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        *PROCESS_ISOLATION,
        *ROOT_CAPABILITIES,
    )
    return [*bwrap, *map(str, command)]


def debian_command(  # noqa: PLR0913 - what bubblewrap has to know
    root: Path,
    command: Iterable[object],
    *,
    cwd: Path,
    readable: Iterable[Path] | None = None,
    writable: Iterable[Path] = (),
    network: bool = False,
) -> list[str | Path]:
    """Return the command that runs `command` inside the Debian in `root`.

    `readable` and `writable` paths, by default checkout and state folder, are the same
    inside; the other files of this system are out of reach.  Without `network` there is
    only a private loopback interface.
    """
    if readable is None:
        readable = (CHECKOUT, state_folder())
    mounts = [
        *(("--ro-bind-try", path, path) for path in NETWORK_FILES),
        *(("--ro-bind", path, path) for path in readable),
        *(("--bind", path, path) for path in writable),
    ]
    return [
        *("bwrap", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *chain.from_iterable(mounts),
        *PROCESS_ISOLATION,
        *(ROOT_CAPABILITIES if os.geteuid() == 0 else ()),
        *(() if network else ("--unshare-net",)),
        *("--chdir", cwd, *map(str, command)),
    ]
