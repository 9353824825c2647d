"""The ports of a stack."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keylag.ports import PORT_RANGE, PortTakenError, keep_ports

LISTEN = (
    "import socket, sys\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print(s.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def listener() -> Iterator[tuple[int, int]]:
    """Give the pid and the port of another program that listens."""
    command = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())
        process.communicate()


def test_ports_stay_what_they_were() -> None:
    """A stack that starts again has the addresses it had, and keeps no others."""
    first = keep_ports(["a", "b"], {})

    assert first == keep_ports(["a", "b"], first)
    assert keep_ports(["a"], first) == {"a": first["a"]}
    assert len(set(first.values())) == 2
    assert all(port in PORT_RANGE for port in first.values())


def test_a_taken_port_is_not_replaced(listener: tuple[int, int]) -> None:
    """The error says who has it and how to move."""
    pid, port = listener

    with pytest.raises(PortTakenError) as caught:
        keep_ports(["keystone"], {"keystone": port})

    said = str(caught.value)
    name = Path("/proc", str(pid), "comm").read_text(encoding="ascii").strip()
    assert f"Port {port} (keystone) is taken by {name} (pid {pid}, user " in said
    assert "keylag up --new-ports" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_port_of_another_user_is_not_replaced() -> None:
    """Who has it may be unknown; how to find out is said."""
    code = (
        "import os, sys; from keylag.ports import keep_ports; os.setuid(65534)\n"
        "keep_ports(['a'], {'a': int(sys.argv[1])})\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", code, str(port)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert f"taken by another user's process; `sudo ss -ltnp sport = :{port}`" in (
        done.stderr
    )


def test_a_port_just_left_is_free() -> None:
    """TCP remembers connections of a server that has stopped for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()

    assert keep_ports(["a"], {"a": port}) == {"a": port}
