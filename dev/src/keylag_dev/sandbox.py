"""Run a command by bubblewrap, on this machine or inside another Debian.

It has mount and process namespaces of its own: nothing stays mounted and nothing
keeps running when the command ends, also when it is killed.
"""

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from keylag.state import CHECKOUT, state_folder

NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl")
"""How the host finds and trusts a package index."""

PROCESS_ISOLATION = ("--unshare-pid", "--die-with-parent")
ROOT_CAPABILITIES = ("--cap-add", "ALL")
"""As outside, root may mount, and become another user, as memcached does."""


def contained_command(command: Iterable[object]) -> list[str]:
    """Return the command that runs another one on this machine's own files.

    A mount that outlived a killed command would let `make clean` delete what is
    mounted.  Only root's mounts can: any other user has to be in namespaces already.
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


def debian_command(
    root: Path,
    command: Iterable[object],
    *,
    cwd: Path,
    writable: Iterable[Path] = (),
    network: bool = False,
) -> list[str | Path]:
    """Return the command that runs another one inside a Debian.

    The checkout and the state folder are where they are outside, read-only but for
    `writable`.  Without `network` there is only a 127.0.0.1 of its own.
    """
    mounts = [
        *(("--ro-bind-try", path, path) for path in NETWORK_FILES),
        *(("--ro-bind", path, path) for path in (CHECKOUT, state_folder())),
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
