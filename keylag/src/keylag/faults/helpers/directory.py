"""An LDAP server; it ends with this process."""

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

from keylag.faults.helpers.host import Host, ready

POLL_SECONDS = 0.05


def run(host: Host, folder: str, address: str) -> None:
    """Run slapd until the process ends."""
    files = host.folder / folder
    server = subprocess.Popen(
        [
            *(files / "slapd", "-f", files / "slapd.conf"),
            *("-h", f"ldap://{address}", "-d", "none"),
        ]
    )
    try:
        _wait(address, server)
        ready()
        server.wait()
    finally:
        server.terminate()
    sys.exit(f"slapd ended: {Path(files, 'slapd.conf')}")


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    host, port = address.split(":")
    while server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
            return
        time.sleep(POLL_SECONDS)
