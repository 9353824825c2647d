"""Helpers of several tests: servers, log events and recorded logs."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pymysql
import pytest

from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.event_splitter import EventSplitter

DATA = Path(__file__).parent / "data"
LOGS = [DATA / "issue.log", DATA / "validate.log"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(holds):
    """Wait until a condition is true; fail after a minute."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def find_program(*names):
    """Return the path of an installed program, or skip the test and name it."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"not installed: {names[0]}")
    return path


HEAD = b"# User@Host: k[k] @ localhost [127.0.0.1]\n"
TIMES = b"# Query_time: 0.5  Lock_time: 0.25  Rows_sent: 2  Rows_examined: 3"
SET = b"SET timestamp=1795240444;\n"
EVENT = HEAD + TIMES + b"\n" + SET + b"SELECT 1;\n"
MARIADB_START = (
    b"/usr/sbin/mariadbd, Version: 10.11.19-MariaDB (Debian 12). started with:\n"
    b"Tcp port: 3306  Unix socket: /run/mysqld.sock\n"
    b"Time\t\t    Id Command\tArgument\n"
)
MYSQL_START = MARIADB_START.replace(b"mariadbd", b"mysqld")


def aggregate_log(data, size=1 << 20, max_classes=20_000):
    aggregator = StatementAggregator(max_classes)
    splitter = EventSplitter(aggregator)
    for at in range(0, len(data), size):
        splitter.write(data[at : at + size])
    splitter.finish()
    aggregator.flush()
    return aggregator


class Server:
    """A private server that tests can stop, freeze and restart."""

    process = None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.thaw()
            self.process.kill()
            self.process.wait()


class Memcached(Server):
    """A memcached on its own port."""

    def __init__(self):
        self.port = free_port()

    def start(self):
        command = [find_program("memcached"), "-l", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen([*command, "-u", "nobody"])
        for _ in range(1000):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.05)
        pytest.fail("memcached does not listen")


class MariaDB(Server):
    """A MariaDB with its own data folder, which logs all statements."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.slow_log = folder / "slow.log"
        # A MariaDB that starts deletes all temporary tables in its folder.
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        subprocess.run(
            [
                find_program("mariadb-install-db"),
                f"--datadir={folder}/data",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            check=True,
            capture_output=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )

    def start(self):
        self.process = subprocess.Popen(
            [
                find_program("mariadbd", "mysqld"),
                "--no-defaults",
                "--user=root",
                f"--datadir={self.folder}/data",
                f"--tmpdir={self.temporary}",
                f"--socket={self.folder}/s",
                f"--pid-file={self.folder}/pid",
                f"--port={self.port}",
                "--bind-address=127.0.0.1",
                "--slow-query-log=1",
                "--long-query-time=0",
                f"--slow-query-log-file={self.slow_log}",
                "--innodb-flush-log-at-trx-commit=0",
                "--skip-name-resolve",
            ],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "err").open("ab"),
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(pymysql.MySQLError):
                self.connect().close()
                return
            time.sleep(0.1)
        pytest.fail((self.folder / "err").read_text()[-2000:])

    def connect(self, **options):
        return pymysql.connect(
            unix_socket=f"{self.folder}/s", user="root", autocommit=True, **options
        )

    def execute(self, *statements, **options):
        with self.connect(**options) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()


COMMAND = [sys.executable, "-m", "keylag_exporters"]


class Exporter:
    """A running exporter command and its /metrics."""

    def __init__(self, *arguments, env=None, scheme="http", cwd=None):
        port = free_port()
        self.url = f"{scheme}://127.0.0.1:{port}/metrics"
        self.process = subprocess.Popen(
            [*COMMAND, *arguments, f"--listen=127.0.0.1:{port}"],
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stderr=subprocess.PIPE,
        )

    def read(self, headers=None, context=None):
        """Return the text of /metrics; wait until the server listens."""
        request = urllib.request.Request(self.url, headers=headers or {})
        for _ in range(600):
            try:
                with urllib.request.urlopen(
                    request, timeout=20, context=context
                ) as response:
                    return response.read().decode()
            except (urllib.error.HTTPError, TimeoutError):
                raise
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.1)
        return pytest.fail("it does not listen")

    def value(self, sample, headers=None):
        for line in self.read(headers).splitlines():
            if line.startswith(sample):
                return float(line.rpartition(" ")[2])
        return None

    def stop(self, number=signal.SIGTERM):
        """Send a signal; return the seconds until the process ended."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=10)
        return time.monotonic() - began
