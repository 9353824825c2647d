"""Real servers for the tests, each in a folder of its own, on free ports."""

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pymysql
import pytest

DATA = Path(__file__).parent / "data"
LOGS = [DATA / "issue.log", DATA / "validate.log"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(*names):
    """Return the path of an installed program, or skip saying which is missing."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"not installed: {names[0]}")
    return found


@pytest.fixture(scope="session")
def data():
    return DATA


@pytest.fixture(scope="session")
def pt_query_digest():
    return program("pt-query-digest")


class MariaDB:
    """A private server, to be stopped, frozen and started again by tests."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.slow_log = folder / "slow.log"
        subprocess.run(
            [
                program("mariadb-install-db"),
                f"--datadir={folder}/data",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            check=True,
            capture_output=True,
        )

    def start(self):
        self.process = subprocess.Popen(
            [
                program("mariadbd", "mysqld"),
                "--no-defaults",
                "--user=root",
                f"--datadir={self.folder}/data",
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

    def connect(self, **more):
        return pymysql.connect(
            unix_socket=f"{self.folder}/s", user="root", autocommit=True, **more
        )

    def execute(self, *statements, **more):
        with self.connect(**more) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.thaw()
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory):
    server = MariaDB(tmp_path_factory.mktemp("mariadb"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mariadb(mariadb_server):
    """The server, running however the test before left it."""
    if mariadb_server.process.poll() is not None:
        mariadb_server.start()
    yield mariadb_server
    mariadb_server.thaw()


@pytest.fixture
def memcached_port():
    port = free_port()
    process = subprocess.Popen(
        [program("memcached"), "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    )
    for _ in range(100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        time.sleep(0.05)
    yield port
    process.kill()
    process.wait()


@pytest.fixture
def samples():
    """Return a function: families to {(sample name, sorted labels): value}."""

    def read(families):
        return {
            (one.name, tuple(sorted(one.labels.items()))): one.value
            for family in families
            for one in family.samples
        }

    return read


@pytest.fixture
def settings():
    """Return a function: a kind's complete settings for a test."""
    from keylag_exporters.settings import complete

    return complete
