"""Allocation of the ports of a stack."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keylag.ports import PORT_RANGE, PortTakenError, allocate_ports

LISTEN = (
    "import socket, sys\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print(s.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def listener() -> Iterator[tuple[int, int]]:
    """Process id and port of another listening process."""
    command = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())
        process.communicate()


def test_previous_ports_are_kept() -> None:
    first = allocate_ports(["a", "b"], {})

    assert first == allocate_ports(["a", "b"], first)
    assert allocate_ports(["a"], first) == {"a": first["a"]}
    assert len(set(first.values())) == 2
    assert all(port in PORT_RANGE for port in first.values())


def test_port_in_use_is_an_error_that_names_the_process(
    listener: tuple[int, int],
) -> None:
    pid, port = listener

    with pytest.raises(PortTakenError) as caught:
        allocate_ports(["keystone"], {"keystone": port})

    message = str(caught.value)
    name = Path("/proc", str(pid), "comm").read_text(encoding="ascii").strip()
    assert f"Port {port} (keystone) is in use by {name} (pid {pid}, user " in message
    assert "keylag up --new-ports" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_port_of_another_user_is_an_error() -> None:
    code = (
        "import os, sys; from keylag.ports import allocate_ports; os.setuid(65534)\n"
        "allocate_ports(['a'], {'a': int(sys.argv[1])})\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", code, str(port)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert f"in use by another user's process; `sudo ss -ltnp sport = :{port}`" in (
        done.stderr
    )


def test_port_in_time_wait_is_free() -> None:
    """TCP keeps connections of a stopped server for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()

    assert allocate_ports(["a"], {"a": port}) == {"a": port}
