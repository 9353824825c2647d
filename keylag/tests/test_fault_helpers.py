"""The programs of faults, each for a few turns."""

import csv
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fake_keystone import FakeKeystone, password_of, running

from keylag.faults.helpers import (
    cache_connections,
    cache_flushes,
    cache_items,
    duty_cycle,
    storm,
)
from keylag.faults.helpers.host import Host
from keylag.faults.model import DELETE, GET, POST, SERVICE
from keylag.faults.probe import ISSUED, VALIDATIONS_PER_TOKEN, Probe
from keylag.ports import free_port
from keylag.processes import stack_variables, start_server
from keylag.services.base import StackOptions, first_bytes
from keylag.stack_info import StackInfo
from keylag.stack_record import StackRecord
from keylag.state import write_private
from keylag.tools import find_program
from keylag.users_csv import COLUMNS

NAME = "fault-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stack's folder with a journal that has one helper."""
    (tmp_path / "faults.json").write_text(NAME)
    return tmp_path


@pytest.fixture
def host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """The host of that helper."""
    for name, value in stack_variables(folder, NAME).items():
        monkeypatch.setenv(name, value)
    return Host()


def limit(host: Host, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fault be taken back after some turns."""
    monkeypatch.setattr(host, "turns", lambda: iter(range(turns)))


@pytest.fixture
def keystone(folder: Path) -> Iterator[FakeKeystone]:
    """A fake Keystone with two users and an administrator."""
    (folder / "data").mkdir()
    passwords = json.dumps({"admin": password_of("admin")})
    write_private(folder / "data" / "secrets.json", passwords)
    with (folder / "data" / "users.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(COLUMNS)
        for name in ("ada", "bob"):
            rows.writerow([name, password_of(name), "Default", "p", "Default"])
    with running() as server:
        port = server.server_address[1]
        ports = {"keystone": port, "service": port}
        StackRecord(ports, StackOptions()).save(folder)
        yield server


@pytest.fixture
def memcached(tmp_path: Path) -> Iterator[str]:
    """The address of a memcached with 2 MB and few connections."""
    port = free_port(())
    command = [find_program("memcached"), "-l", "127.0.0.1", "-p", str(port)]
    limits = ["-U", "0", "-m", "2", "-c", "32"]
    limits += ["-u", "root"] if os.geteuid() == 0 else []
    with subprocess.Popen([*command, *limits]) as server:
        try:
            while not first_bytes(port, b"version\r\n"):
                time.sleep(0.02)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def test_a_helper_takes_turns_while_the_journal_has_it(
    host: Host, folder: Path
) -> None:
    turns = host.turns()
    first, second = next(turns), next(turns)
    (folder / "faults.json").write_text("fault-2")

    assert (first, second) == (0, 1)
    assert next(turns, None) is None
    (folder / "faults.json").unlink()
    assert not host.is_wanted()


def test_log_ins_use_the_users_in_turn(
    host: Host, keystone: FakeKeystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(host, 6, monkeypatch)

    storm.run(host, "log-in", per_second=200)

    assert keystone.users == {"ada": 3, "bob": 3}


def test_wrong_passwords_are_rejected(
    host: Host, keystone: FakeKeystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(host, 4, monkeypatch)

    storm.run(host, "wrong-password", per_second=200)

    assert keystone.requests == {("POST", 401): 4}


def test_a_storm_has_its_rate(
    host: Host, keystone: FakeKeystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(host, 5, monkeypatch)
    started = time.monotonic()

    storm.run(host, "log-in", per_second=20)

    assert time.monotonic() - started >= 4 / 20


def test_a_storm_survives_a_keystone_that_restarts(
    host: Host, keystone: FakeKeystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = StackRecord({"keystone": free_port(())}, StackOptions())
    record.save(host.folder)
    limit(host, 2, monkeypatch)

    storm.run(host, "log-in", per_second=200)

    assert not keystone.requests


def test_the_probe_measures_each_kind_of_call(
    folder: Path, keystone: FakeKeystone
) -> None:
    measured = Probe(StackInfo(folder)).measure(2, [DELETE])

    assert {kind: one.calls for kind, one in measured.items()} == {
        POST: ISSUED,
        GET: ISSUED * VALIDATIONS_PER_TOKEN,
        DELETE: ISSUED,
    }
    assert all(one.errors == 0 for one in measured.values())
    assert 0 < measured[POST].p50 <= measured[POST].p95


def test_the_probe_counts_failed_calls(folder: Path, keystone: FakeKeystone) -> None:
    """The fake Keystone rejects the calls of a service, which have one token only."""
    probe = Probe(StackInfo(folder))

    measured = probe.measure(2, [SERVICE])

    assert measured[SERVICE].errors == measured[SERVICE].calls == ISSUED


def stats(address: str, name: str) -> int:
    """Return a value of memcached's statistics."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(b"stats\r\nquit\r\n")
        text = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    return int(text.split(f"STAT {name} ")[1].split()[0])


def test_other_items_evict(
    host: Host, memcached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(host, 400, monkeypatch)

    cache_items.run(host, memcached, per_second=1e6)

    assert stats(memcached, "evictions") > 0


def test_a_client_flushes_memcached(
    host: Host, memcached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(host, 3, monkeypatch)

    cache_flushes.run(host, memcached, per_second=1e3)

    for _ in range(100):
        if stats(memcached, "cmd_flush") == 3:
            break
        time.sleep(0.02)
    assert stats(memcached, "cmd_flush") == 3


def test_all_connections_are_held(
    host: Host, memcached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_held: list[bytes] = []

    def turns() -> Iterator[int]:
        yield 0
        while_held.append(first_bytes(int(memcached.split(":")[1]), b"version\r\n"))

    monkeypatch.setattr(host, "turns", turns)

    cache_connections.run(host, memcached)

    assert not while_held[0].startswith(b"VERSION")


def test_a_duty_cycle_suspends_and_resumes(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = start_server(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        stack_variables(folder, "mariadb"),
        folder / "log",
    )
    process = psutil.Process(sleeper.pid)
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            seen.add(process.status())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        limit(host, 5, monkeypatch)
        duty_cycle.run(host, "mariadb", period_ms=100, stopped_share=0.5)
        after = process.status()
    finally:
        ended.set()
        watcher.join()
        sleeper.kill()
        sleeper.wait()

    assert psutil.STATUS_STOPPED in seen
    assert after != psutil.STATUS_STOPPED
