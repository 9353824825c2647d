"""Real servers for tests, on free ports of 127.0.0.1, stopped by process id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_PATIENCE_SECONDS = 60

#: What PyPI has only as C source, Debian has built for its own Python.
DEBIAN_LIBRARIES = "/usr/lib/python3/dist-packages"


def environment() -> dict[str, str]:
    """Return ours without the sanitizers, which are for what loads our C only."""
    return {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}


def program(name: str) -> str:
    """Return the path of a program; skip the test if it is missing."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"there is no {name} on this machine; `make setup` installs it")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(command: list[str], port: int, folder: Path) -> Iterator[int]:
    """Run a server while the block runs; yield its port when it accepts connections."""
    log = folder / f"{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, env=environment()
        )
    try:
        _wait_for(process, port, log)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    message = f"{process.args!r} does not answer: {log.read_text()}"
    raise RuntimeError(message)


def memcached(folder: Path) -> Iterator[int]:
    port = free_port()
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    command = [program("memcached"), "-l", "127.0.0.1", "-U", "0", *user]
    # It counts what it sent after it has sent it: with a second thread, who asks
    # for the counts may be answered in between.
    command += ["-t", "1"]
    with running_server([*command, "-p", str(port)], port, folder) as answering:
        yield answering


_SLAPD_CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
database mdb
suffix "dc=example,dc=org"
rootdn "cn=root,dc=example,dc=org"
rootpw root
directory {folder}
"""
_SLAPD_TREE = """\
dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=users,dc=example,dc=org
objectClass: organizationalUnit
ou: users

dn: uid=ada,ou=users,dc=example,dc=org
objectClass: inetOrgPerson
uid: ada
cn: Ada
sn: Lovelace
userPassword: secret
"""


def slapd(folder: Path) -> Iterator[int]:
    """Run an LDAP server with one user, `ada`, whose password is `secret`."""
    port = free_port()
    # A copy, because AppArmor lets Debian's own only into Debian's own folders.
    own = shutil.copy(program("slapd"), folder / "slapd")
    (folder / "slapadd").symlink_to(own)
    configuration, tree = folder / "slapd.conf", folder / "tree.ldif"
    configuration.write_text(_SLAPD_CONFIGURATION.format(folder=folder))
    tree.write_text(_SLAPD_TREE)
    add = [str(folder / "slapadd"), "-f", str(configuration), "-l", str(tree)]
    subprocess.run(add, check=True, capture_output=True, env=environment())
    listen = ["-h", f"ldap://127.0.0.1:{port}", "-d", "none"]
    with running_server(
        [str(own), "-f", str(configuration), *listen], port, folder
    ) as open_:
        yield open_


def redis(folder: Path) -> Iterator[int]:
    port = free_port()
    command = [program("redis-server"), "--bind", "127.0.0.1", "--save", ""]
    with running_server([*command, "--port", str(port)], port, folder) as answering:
        yield answering


def mariadb(folder: Path) -> Iterator[int]:
    """Run a MariaDB without passwords, with an empty database `keystone`."""
    port = free_port()
    (folder / "data" / "keystone").mkdir(parents=True)
    (folder / "temporary").mkdir()
    command = [
        *(program("mariadbd"), "--no-defaults", "--bind-address=127.0.0.1"),
        *(f"--datadir={folder / 'data'}", f"--socket={folder / 'mariadb.sock'}"),
        # A MariaDB that starts deletes all temporary tables in its folder.
        f"--tmpdir={folder / 'temporary'}",
        *("--skip-grant-tables", "--innodb-log-file-size=4M"),
        *(["--user=root"] if os.getuid() == 0 else []),
    ]
    with running_server([*command, f"--port={port}"], port, folder) as answering:
        yield answering
