"""Prometheus and promtool, on a folder of blocks."""

import json
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil
import yaml

from keylag.errors import KeylagError
from keylag.ports import allocate_ports

START_SECONDS: Final = 300
QUERY_SECONDS: Final = 150
BLOCK_SECONDS: Final = 7200


_CREATE_BLOCKS: Final = (
    *("promtool", "tsdb", "create-blocks-from", "--quiet"),
    *("--max-block-duration=24h", "openmetrics"),
)
"""promtool reads its input once for each block, so blocks should be few."""


class PrometheusError(KeylagError):
    """Prometheus or promtool failed."""


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    port: int
    process: psutil.Process

    def get(self, path: str, parameters: Mapping[str, Any]) -> Any:
        """Return the data of a response; raises PrometheusError with the reason."""
        text = self.get_text(path, parameters)
        return json.loads(text)["data"]

    def get_text(self, path: str, parameters: Mapping[str, Any]) -> bytes:
        """Return a response as it is."""
        body = urlencode(parameters, doseq=True)
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{body}"
        try:
            with urlopen(address, timeout=QUERY_SECONDS) as response:
                text: bytes = response.read()
        except HTTPError as error:
            reason = json.loads(error.read())["error"]
            message = f"Prometheus refused {parameters}: {reason}"
            raise PrometheusError(message) from error
        except OSError as error:
            message = f"Prometheus does not answer {parameters}: {error}"
            raise PrometheusError(message) from error
        return text

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used since its start."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def own(self, metric: str) -> float:
        """Return a metric of Prometheus itself that has no labels."""
        address = f"http://127.0.0.1:{self.port}/metrics"
        with urlopen(address, timeout=QUERY_SECONDS) as response:
            text = response.read().decode()
        found = re.search(rf"^{metric} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def value(self, query: str) -> float:
        """Return the only value of an instant query, or not a number."""
        found = self.get("query", {"query": query})["result"]
        return float(found[0]["value"][1]) if found else float("nan")


@contextmanager
def running(
    data: Path,
    log: Path,
    config: Mapping[str, Any] | None = None,
    *options: str,
    longest: str = "2h",
) -> Iterator[Prometheus]:
    """Start Prometheus on a folder of data; stop it at the end of the context.

    It compacts nothing, which would take the time of the queries: the shortest and the
    longest blocks are equal, unless an option says otherwise.
    """
    (port,) = allocate_ports(["prometheus"], {}).values()
    file = log.with_suffix(".yml")
    file.write_text(yaml.safe_dump(dict(config or {})), encoding="utf-8")
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=60d",
        "--storage.tsdb.min-block-duration=2h",
        f"--storage.tsdb.max-block-duration={longest}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *options,
    ]
    with (
        log.open("ab") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            wait_for(f"http://127.0.0.1:{port}/-/ready", process, log)
            yield Prometheus(port, psutil.Process(process.pid))
        finally:
            process.terminate()


def compact(data: Path, log: Path) -> None:
    """Let Prometheus merge blocks, as it does with its usual retention of 15 days."""
    with running(data, log, longest="36h") as server:
        rounds, compactions = -1.0, -1.0
        while True:
            now = server.own("prometheus_tsdb_compactions_triggered_total")
            done = server.own("prometheus_tsdb_compactions_total")
            if now > rounds >= 1 and done == compactions:
                return
            if now > rounds:
                rounds, compactions = now, done
            time.sleep(1)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server that was just started answers.

    Raises PrometheusError if it ends or is too slow.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - an address of our own
                return
        except OSError:
            time.sleep(0.2)
    message = f"The server at {url} did not start. Its log: {log}"
    raise PrometheusError(message)


def create_blocks(lines: Iterable[str], scratch: Path, data: Path) -> int:
    """Write OpenMetrics text to a file, make blocks of it; return its bytes."""
    text = scratch.with_suffix(".om")
    try:
        with text.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(line)
            file.write("# EOF\n")
        size = text.stat().st_size
        made = subprocess.run(
            [*_CREATE_BLOCKS, str(text), str(scratch)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        text.unlink(missing_ok=True)
    if made.returncode:
        message = f"promtool could not make blocks: {made.stderr or made.stdout}"
        raise PrometheusError(message)
    data.mkdir(parents=True, exist_ok=True)
    for block in scratch.iterdir():
        block.rename(data / block.name)
    scratch.rmdir()
    return size
