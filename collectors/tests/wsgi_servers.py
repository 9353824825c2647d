"""The servers that Keystone runs under, started for real on 127.0.0.1."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otlp_endpoints import LOCAL, free_port

BIN = Path(sys.executable).parent
WORKERS = 2
PATIENCE = 180
"""Seconds until something is broken, not slow."""

UWSGI = (
    *(BIN / "uwsgi", "--master", "--need-app", "--enable-threads"),
    *("--die-on-term", "--single-interpreter", "--disable-logging"),
    *("--processes", str(WORKERS), "--virtualenv", sys.prefix),
    # At a reload it executes itself: as a Python module that is an interpreter.
    *("--binary-path", sys.executable),
    *("--buffer-size", "65535", "--add-header", "Connection: close"),
)
GUNICORN = (BIN / "gunicorn", "--workers", str(WORKERS))


def uwsgi(*options: str, module: str = "keylag_otel.wsgi:application") -> list[Any]:
    """Return the command of a uWSGI that serves Keystone on $ADDRESS."""
    return [*UWSGI, "--http-socket", "$ADDRESS", "--module", module, *options]


BY_WORKER = """
import json, os
import uwsgi
from uwsgidecorators import postfork

@postfork
def choose():
    os.environ.update(json.loads(os.environ["BY_WORKER"])[uwsgi.worker_id() - 1])

from keylag_otel.wsgi import application
"""


@contextmanager
def serving_variants(
    folder: Path,
    variants: Mapping[str, Mapping[str, str]],
    environment: Mapping[str, str],
) -> Iterator[dict[str, Server]]:
    """Serve one Keystone with one worker for each variant of the environment.

    Each has an address of its own; all were forked from the same process.
    """
    (folder / "by_worker.py").write_text(BY_WORKER)
    addresses = [f"{LOCAL}:{free_port()}" for _ in variants]
    command = [*UWSGI, "--module", "by_worker:application", "--pythonpath", folder]
    command += ["--processes", str(len(variants))]
    for index, address in enumerate(addresses):
        command += ["--http-socket", address, "--map-socket", f"{index}:{index + 1}"]
    ours = {"BY_WORKER": json.dumps(list(variants.values())), **environment}
    with serving(command, folder / "server.log", ours, addresses[0]) as server:
        yield {
            name: Server(address, server.process, server.log)
            for name, address in zip(variants, addresses)
        }


def gunicorn(*options: str, module: str = "keylag_otel.wsgi:application") -> list[Any]:
    """Return the command of a gunicorn that serves Keystone on $ADDRESS."""
    return [*GUNICORN, "--bind", "$ADDRESS", *options, module]


@dataclass
class Response:
    """Status, headers and body that the client received."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next(value for key, value in self.headers if key.lower() == name)


@dataclass
class Server:
    """A running server, and how many requests it was sent."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path
    sent: int = 0

    graceful = signal.SIGHUP
    """What asks it for new workers."""

    def request(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> Response:
        """Send one request, on a connection of its own."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body)
        names |= {} if body is None else {"Content-Type": "application/json"}
        try:
            connection.request(method, path, content, names)
            response = connection.getresponse()
            self.sent += 1
            return Response(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    def request_often(self, times: int, path: str = "/v3") -> None:
        """Send that many requests, four at a time."""
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: self.request("GET", path), range(times)))
        assert {answer.status for answer in answers} == {200}, self.tail()

    def request_of_each(self, times: int) -> None:
        """Send that many, and more until every worker of a stub has served one."""
        until(lambda: len(self.children()) >= WORKERS, f"workers of {self.log}")
        waiting = set(self.children())
        self.request_often(times)
        while waiting:
            answer = self.request("GET", "/v3")
            waiting.discard(int(answer.header("worker")))

    def children(self) -> list[int]:
        """Return the process ids of the workers."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def reload(self) -> None:
        """Request new workers; return when they have replaced the old ones."""
        before = set(self.children())
        self.process.send_signal(self.graceful)
        until(lambda: self._renewed(before), f"new workers of {self.log}")

    def _renewed(self, before: set[int]) -> bool:
        now = set(self.children())
        return len(now) == len(before) and not now & before

    def stop(self) -> float:
        """Terminate it; return the seconds until its last worker has ended."""
        workers = self.children()
        # uWSGI ends a worker that is still closing its last request without
        # telling Python.
        time.sleep(0.2)
        started = time.perf_counter()
        self.process.terminate()
        until(lambda: not any(map(runs, workers)), f"workers of {self.log} to end")
        seconds = time.perf_counter() - started
        self.process.wait(PATIENCE)
        return seconds

    def tail(self) -> str:
        return self.log.read_text("utf-8", "replace")[-4000:]


def runs(pid: int) -> bool:
    """Return whether a process has not ended; its parent may not know yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def until(holds: Any, what: str) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.01)


def _listens(server: Server) -> bool:
    assert server.process.poll() is None, server.tail()
    host, port = server.address.split(":")
    try:
        socket.create_connection((host, int(port))).close()
    except OSError:
        return False
    return True


@contextmanager
def serving(
    command: Sequence[Any],
    log: Path,
    environment: Mapping[str, str],
    address: str = "",
    kind: type[Server] = Server,
) -> Iterator[Server]:
    """Start a server in the log's folder, and stop it at the end of the test."""
    address = address or f"{LOCAL}:{free_port()}"
    put = {"$ADDRESS": address, "$FOLDER": str(log.parent)}
    words = [_filled(str(word), put) for word in command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            env={**os.environ, "HOME": str(log.parent), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
        )
    server = kind(address, process, log)
    try:
        until(lambda: _listens(server), f"{log} to listen")
        yield server
    finally:
        _end(process, server)


def _filled(word: str, put: Mapping[str, str]) -> str:
    for name, value in put.items():
        word = word.replace(name, value)
    return word


def _end(process: subprocess.Popen[bytes], server: Server) -> None:
    if process.poll() is not None:
        return
    workers = server.children()
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        for pid in (*workers, process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
