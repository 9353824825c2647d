"""Measures the CPU time of a scrape, for each source and all sources together.

Starts MariaDB and memcached, and one `keylag-exporter all` per row of the result.
Scrapes each exporter once a second, as Prometheus does, while the slow log grows. A
second MariaDB serves ProxySQL's tables, and this program uWSGI's statistics and the
URL of the probes. A source with an interval costs nothing in most scrapes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

# ruff: noqa: E402 -- the tests' helpers start the servers
import test_proxysql
import test_revocations
from exporter_helpers import DATA, LOGS, MariaDB, Memcached, free_port
from probed_server import KeystoneStub
from test_uwsgi import STATISTICS

SOURCES = {
    "slow-log": 'file = "{log}"\nfrom-start = true\n',
    "proxysql": 'port = {proxysql}\nuser = "reader"\npassword-file = "{password}"\n',
    "revocations": 'port = {mariadb}\npassword-file = "{password}"\n',
    "memcached": 'address = "127.0.0.1:{memcached}"\n',
    "uwsgi": 'address = "127.0.0.1:{uwsgi}"\n',
    "host": "",
    "processes": "",
    "mysql": 'port = {mariadb}\npassword-file = "{password}"\n',
    "probe": 'url = "{probed}"\n',
}
HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4",
    "Accept-Encoding": "gzip",
}
SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
WARM_UP = 3
EVENTS = 10_000


class Statistics(socketserver.ThreadingTCPServer):
    """Sends uWSGI's statistics to each client."""

    daemon_threads = True

    def finish_request(self, request: object, _: object) -> None:
        """Send one document."""
        request.sendall(json.dumps(STATISTICS).encode())


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, object]]:
    """Start the servers; yield the values of the sources' settings."""
    with ExitStack() as stack:
        mariadb, proxysql = MariaDB(folder / "mariadb"), MariaDB(folder / "proxysql")
        memcached = Memcached()
        for server in (mariadb, proxysql, memcached):
            stack.callback(server.stop)
            server.start()
        test_proxysql.load_recorded_tables(proxysql, DATA)
        test_revocations.create(mariadb)
        test_revocations.fill(mariadb, EVENTS)
        uwsgi = stack.enter_context(Statistics(("127.0.0.1", 0), None))
        threading.Thread(target=uwsgi.serve_forever, daemon=True).start()
        stack.callback(uwsgi.shutdown)
        probed = KeystoneStub()
        stack.callback(probed.shutdown)
        log, password = folder / "slow.log", folder / "password"
        log.write_bytes(b"".join(map(Path.read_bytes, LOGS)))
        password.write_text("p")
        yield {
            "log": log,
            "password": password,
            "mariadb": mariadb.port,
            "proxysql": proxysql.port,
            "memcached": memcached.port,
            "uwsgi": uwsgi.server_address[1],
            "probed": probed.url(),
        }


@contextmanager
def terminated(
    command: list[str], **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the end of the `with` block."""
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env=os.environ | environment
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class Exporter:
    """A running `keylag-exporter all` with some of the sources."""

    def __init__(
        self, sources: list[str], values: dict[str, object], checkout: Path
    ) -> None:
        self.port = free_port()
        sections = (f"[{name}]\n{SOURCES[name]}" for name in sources)
        config = Path(values["log"]).with_name(f"{self.port}.toml")
        config.write_text("\n".join(sections).format(**values))
        command = [sys.executable, "-m", "keylag_exporters", "all"]
        command += [f"--config={config}", f"--listen=127.0.0.1:{self.port}"]
        self.running = terminated(command, PYTHONPATH=str(checkout / "exporters/src"))

    def __enter__(self) -> Self:
        """Start it and wait until it responds."""
        self.pid = self.running.__enter__().pid
        for _ in range(100):
            with suppress(OSError):
                self.scrape()
                return self
            time.sleep(0.1)
        sys.exit("the exporter does not respond")

    def __exit__(self, *error: object) -> None:
        self.running.__exit__(*error)

    def scrape(self) -> bytes:
        """Return the whole exposition."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        request = urllib.request.Request(url, headers=HEADERS)
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 -- our own
            body: bytes = answer.read()
        return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body

    def cpu_seconds(self) -> float:
        """Return the user and system time of the process."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * SECONDS_PER_TICK


def measure(
    exporters: dict[str, Exporter], log: Path, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Scrape once a second while the log grows; return the figures of each row."""
    bodies, before = {}, {}
    for number in range(WARM_UP + options.scrapes):
        if number == WARM_UP:
            before = {name: one.cpu_seconds() for name, one in exporters.items()}
        began = time.monotonic()
        with log.open("ab") as file:
            file.write(one_event() * options.statements)
        bodies = {name: one.scrape() for name, one in exporters.items()}
        time.sleep(max(0.0, began + 1 - time.monotonic()))
    used = {name: one.cpu_seconds() - before[name] for name, one in exporters.items()}
    return {
        name: {
            "cpu_milliseconds_per_scrape": used[name] / options.scrapes * 1e3,
            "samples": samples(name, body),
        }
        for name, body in bodies.items()
    }


def one_event() -> bytes:
    """Return the first event of a recorded log."""
    _, mark, text = LOGS[0].read_bytes().partition(b"# User@Host")
    return mark + text.partition(mark)[0]


def samples(name: str, body: bytes) -> int:
    """Return the number of samples; exit if a source failed."""
    failed = re.search(rb"^keylag_exporter_source_success.* 0\.0$", body, re.MULTILINE)
    if failed:
        sys.exit(f"{name}: {failed[0].decode()}")
    return sum(not line.startswith(b"#") for line in body.splitlines())


def table(result: dict[str, dict[str, float]]) -> str:
    """Return the figures as a text table."""
    lines = [f"{'source':<12} {'CPU ms per scrape':>18} {'samples':>8}"]
    lines += [
        f"{name:<12} {one['cpu_milliseconds_per_scrape']:>18.1f} {one['samples']:>8}"
        for name, one in result.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scrapes", type=int, default=60)
    parser.add_argument("--statements", type=int, default=50, help="per second")
    parser.add_argument(
        "--checkout",
        type=Path,
        default=HERE.parents[1],
        help="checkout to measure",
    )
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--out", type=Path, default=Path("out/bench/scrape.json"))
    options = parser.parse_args()
    rows = {name: [name] for name in SOURCES} | {"all": list(SOURCES)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        values = stack.enter_context(servers(folder))
        exporters = {
            name: stack.enter_context(Exporter(sources, values, options.checkout))
            for name, sources in rows.items()
        }
        result = measure(exporters, Path(str(values["log"])), options)
    text = json.dumps(result, indent=1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text + "\n")
    print(text if options.output == "json" else table(result))  # noqa: T201 -- the report


if __name__ == "__main__":
    main()
