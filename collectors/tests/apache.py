"""Debian's Apache with mod_wsgi, serving with the libraries of these tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wsgi_servers import WORKERS, Server

import keylag_otel

MODULES = Path("/usr/lib/apache2/modules")
APACHE = "/usr/sbin/apache2"
OUR_FILE = Path(keylag_otel.__file__).with_name("wsgi.py")
#: mod_wsgi refuses to run as root; in a user namespace, root has no privileges.
AS_USER = ("unshare", "--map-user=1000", "--map-group=1000")

CONFIGURATION = Path(__file__).with_name("apache.conf")


def apache(
    script: Any = OUR_FILE, group: str = "%{GLOBAL}", **options: Any
) -> list[Any]:
    """Return the command of an Apache that serves a script on $ADDRESS.

    `group` is the application group; each but the global one has a subinterpreter of
    its own.  `options` are those of WSGIDaemonProcess, with `_` for `-`.
    """
    options = {
        "processes": WORKERS,
        "display_name": "keystone",
        "home": "$FOLDER",
        # Not python-home: its interpreter need not be the one of mod_wsgi.
        "python_path": sysconfig.get_path("purelib"),
        **options,
    }
    words = (f"{name.replace('_', '-')}={put}" for name, put in options.items())
    variables = {
        "FOLDER": "$FOLDER",
        "ADDRESS": "$ADDRESS",
        "MODULES": MODULES,
        "SCRIPT": script,
        "GROUP": group,
        "OPTIONS": " ".join(words),
    }
    environment = ["env", *(f"{name}={put}" for name, put in variables.items())]
    as_user = AS_USER if os.getuid() == 0 else ()
    return [*environment, *as_user, APACHE, "-f", CONFIGURATION, "-D", "FOREGROUND"]


def skip_without_apache() -> None:
    """Skip the test, saying why, where there is no mod_wsgi that can run it."""
    module = MODULES / "mod_wsgi.so"
    library = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so"
    if not Path(APACHE).exists() or not module.exists():
        pytest.skip("there is no Apache with mod_wsgi; `make setup-tests` installs it")
    if library.encode() not in module.read_bytes():
        pytest.skip("this mod_wsgi runs another Python than these tests")
    if os.getuid() == 0 and not _may_be_user():
        pytest.skip("mod_wsgi serves nothing as root, and `unshare` is not allowed")


def _may_be_user() -> bool:
    if shutil.which(AS_USER[0]) is None:
        return False
    return subprocess.run([*AS_USER, "true"], check=False).returncode == 0


@dataclass
class Apache(Server):
    """An Apache; its workers are the processes of mod_wsgi."""

    graceful = signal.SIGUSR1

    def children(self) -> list[int]:
        return [pid for pid in super().children() if _is_daemon(pid)]


def _is_daemon(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"keystone")
    except OSError:
        return False
