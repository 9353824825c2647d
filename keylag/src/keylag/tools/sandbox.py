"""Run a command inside another Debian, by bubblewrap.

It has mount and process namespaces of its own: nothing stays mounted and nothing
keeps running when the command ends, however it ends.
"""

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from keylag.state import CHECKOUT

HOST_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl")
"""How the host finds and trusts a package index."""


def inside(
    root: Path,
    command: Iterable[object],
    *,
    cwd: Path,
    writable: Iterable[Path] = (),
    network: bool = False,
) -> list[str | Path]:
    """Return the command that runs another one inside a Debian.

    The checkout is where it is outside, read-only but for `writable`.  Without
    `network` there is only a 127.0.0.1 of its own.
    """
    mounts = [
        *(("--ro-bind-try", path, path) for path in HOST_NETWORK),
        ("--ro-bind", CHECKOUT, CHECKOUT),
        *(("--bind", path, path) for path in writable),
    ]
    return [
        *("bwrap", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *chain.from_iterable(mounts),
        *("--unshare-pid", "--die-with-parent"),
        # As outside, root may become another user: memcached does.
        *(("--cap-add", "ALL") if os.geteuid() == 0 else ()),
        *(() if network else ("--unshare-net",)),
        *("--chdir", cwd, *map(str, command)),
    ]
