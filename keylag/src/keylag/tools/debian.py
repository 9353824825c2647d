"""A minimal Debian of any release in a folder, and commands run inside it.

It is made by mmdebstrap and entered by bubblewrap, in mount and process namespaces
of its own: nothing stays mounted and nothing keeps running when a command ends,
however it ends.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from keylag.state import CHECKOUT
from keylag.tools.base import Build, Tool

MIRROR = "http://deb.debian.org/debian"
SOURCE = "keylag/src/keylag/tools/debian.py"
PACKAGES = (
    *("ca-certificates", "gcc", "libc6-dev"),
    *("memcached", "redis-server", "slapd", "libapache2-mod-wsgi-py3"),
    *("python3-ldap", "python3-ldappool", "python3-mysqldb"),
)
"""What compiles the collectors, and the servers and libraries of their tests."""

UNUSED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")

HOST_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl")
"""How the host finds and trusts a package index."""


@dataclass(frozen=True)
class Debian:
    """A release of Debian, by its code name, and the Python to have from it."""

    release: str
    python: str
    mariadb: str = "mariadb-server-core"

    @property
    def tool(self) -> Tool:
        """Return what the set-up makes of it."""
        return Tool(
            name=f"debian-{self.release}",
            purpose=f"Debian {self.release} with Python {self.python}",
            inputs=(SOURCE,),
            program=f"usr/bin/python{self.python}",
            make=self._make,
            advice=(
                "It needs mmdebstrap, as root or with user namespaces, and Debian's "
                f"mirror, {MIRROR}."
            ),
            command="make test-pythons",
        )

    def _make(self, build: Build) -> None:
        archive = build.folder / "root.tar"
        python = (f"python{self.python}", f"python{self.python}-dev", "python3")
        packages = ",".join([*PACKAGES, *python, self.mariadb])
        build.run(
            [
                *("mmdebstrap", "--variant=essential", f"--include={packages}"),
                # A mirror may lag behind; what it has is signed all the same.
                '--aptopt=Acquire::Check-Valid-Until "false"',
                *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNUSED),
                *(self.release, str(archive), MIRROR),
            ]
        )
        # Unpacked so that whoever made it can delete it.
        unpack = ("tar", "--no-same-owner", "--exclude=./dev/*", "-xf")
        build.run([*unpack, str(archive)])
        archive.unlink()


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
