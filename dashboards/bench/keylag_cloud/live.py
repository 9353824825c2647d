"""Serves the series of a cloud as its Collectors do, to a Prometheus with the rules."""

import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any, Final

import numpy as np

from keylag.errors import KeylagError
from keylag_cloud import prometheus
from keylag_cloud.model import Cloud, Series
from keylag_cloud.prometheus import Prometheus

WARM_UP_SECONDS: Final = 15
IDLE_SECONDS: Final = 16
"""Longer than the interval of the rules."""
IDLE_SHARE: Final = 0.02
DIAGNOSES: Final = 3
DIAGNOSED: Final = "2m"
"""Window of each diagnosis."""
DIAGNOSED_CODES: Final = (0, 1)
"""Healthy, and findings; another code is a failure."""
HISTORY_SECONDS: Final = 3600
"""How long workers have run at the first scrape."""


class NotDiagnosedError(KeylagError):
    """`keylag diagnose` failed."""


@dataclass(frozen=True)
class RuleGroup:
    """The evaluations of one group of rules."""

    name: str
    interval: float
    seconds: float
    """The longest evaluation seen, beside scrapes."""
    cpu_seconds: float
    """CPU time of one evaluation, with no scrape beside it."""


@dataclass(frozen=True)
class LiveResult:
    """What one Prometheus needed."""

    series: int
    recorded_series: int
    scrape_seconds: float
    cpu: float
    """Processors in use, on average."""
    resident_bytes: float
    diagnosis_seconds: float
    """The longest `keylag diagnose`, beside scrapes and rules."""
    rule_groups: Sequence[RuleGroup]


@contextmanager
def collectors(cloud: Cloud) -> Iterator[list[int]]:
    """Serve the metrics of each controller; yield the ports."""
    with ExitStack() as stack:
        ports: Queue[int] = Queue()
        for host in cloud.hosts():
            server = Process(target=_serve, args=(cloud, host, ports), daemon=True)
            server.start()
            stack.callback(server.terminate)
        yield [ports.get(timeout=prometheus.START_SECONDS) for _ in cloud.hosts()]


def _serve(cloud: Cloud, host: str, ports: "Queue[int]") -> None:
    # The handler of the command would print a traceback when the server is ended.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    own = re.compile(rf"{host}([:/]\d+)?")
    series = [
        one for one in cloud.series() if own.fullmatch(dict(one.labels)["instance"])
    ]
    page = _Page(series)

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = page.text()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        ports.put(server.server_port)
        server.serve_forever()


class _Page:
    """A page of metrics that grow with time."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._texts = [one.text for one in series]
        self._rates = np.array([one.normal if one.counts else 0 for one in series])
        self._gauges = np.array([0 if one.counts else one.normal for one in series])
        self._started = time.time() - HISTORY_SECONDS

    def text(self) -> bytes:
        """Return the page of now."""
        values = self._rates * (time.time() - self._started) + self._gauges
        pairs = zip(self._texts, values.tolist(), strict=True)
        return "".join([f"{text}{value:.9g}\n" for text, value in pairs]).encode()


def configuration(
    ports: Sequence[int], rules: Path, scrape_seconds: int
) -> Mapping[str, Any]:
    """Return the configuration of Prometheus for the Collectors at these ports."""
    job = {
        "job_name": "otlp",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
    }
    interval = f"{scrape_seconds}s"
    return {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": "15s",
        },
        "rule_files": [str(rules)],
        "scrape_configs": [job],
    }


def measure(
    cloud: Cloud, rules: Path, folder: Path, scrape_seconds: int, minutes: float
) -> LiveResult:
    """Scrape a cloud for some minutes; return what Prometheus needed."""
    data, log = folder / "live", folder / "live.log"
    with ExitStack() as scraped:
        ports = scraped.enter_context(collectors(cloud))
        config = configuration(ports, rules, scrape_seconds)
        with prometheus.running(data, log, config) as server:
            # Rates need two scrapes.
            time.sleep(2 * scrape_seconds + WARM_UP_SECONDS)
            seen = _observe(server, minutes * 60)
            diagnosis_seconds = max(_diagnose(server) for _ in range(DIAGNOSES))
            now = time.time()
            scraped.close()
            _await_idle(server)
            groups = list(_evaluate(server, now, seen.longest))
        return LiveResult(
            series=seen.series,
            recorded_series=seen.recorded_series,
            scrape_seconds=seen.scrape_seconds,
            cpu=seen.cpu,
            resident_bytes=seen.resident,
            diagnosis_seconds=diagnosis_seconds,
            rule_groups=groups,
        )


@dataclass(frozen=True)
class _Seen:
    series: int
    recorded_series: int
    scrape_seconds: float
    cpu: float
    resident: int
    longest: Mapping[str, float]
    """Seconds of the longest evaluation of each group of rules."""


def _observe(server: Prometheus, seconds: float) -> _Seen:
    started, before = time.monotonic(), server.cpu_seconds()
    longest: dict[str, float] = {}
    resident = 0
    while time.monotonic() < started + seconds:
        for group in server.get("rules", {})["groups"]:
            name, spent = group["name"], group["evaluationTime"]
            longest[name] = max(longest.get(name, 0), spent)
        resident = max(resident, server.process.memory_info().rss)
        time.sleep(1)
    cpu = (server.cpu_seconds() - before) / (time.monotonic() - started)
    return _Seen(
        series=int(server.value("sum(scrape_samples_scraped)")),
        recorded_series=int(server.value('count({__name__=~"keylag:.+"})')),
        scrape_seconds=server.value("max(scrape_duration_seconds)"),
        cpu=cpu,
        resident=resident,
        longest=longest,
    )


def _diagnose(server: Prometheus) -> float:
    """Return the seconds of one `keylag diagnose`."""
    program = Path(sys.executable).with_name("keylag")
    options = (f"--prometheus=http://127.0.0.1:{server.port}", f"--since={DIAGNOSED}")
    started = time.monotonic()
    done = subprocess.run(
        [program, "diagnose", *options], capture_output=True, text=True, check=False
    )
    if done.returncode not in DIAGNOSED_CODES:
        raise NotDiagnosedError(done.stderr)
    return time.monotonic() - started


def _await_idle(server: Prometheus) -> None:
    """Wait until Prometheus has stored its last scrapes, and its rules find none."""
    deadline = time.monotonic() + prometheus.START_SECONDS
    spent = math.inf
    while spent > IDLE_SHARE * IDLE_SECONDS and time.monotonic() < deadline:
        before = server.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        spent = server.cpu_seconds() - before


def _evaluate(
    server: Prometheus, now: float, longest: Mapping[str, float]
) -> Iterator[RuleGroup]:
    """Evaluate each group of rules once, at the end of the scrapes."""
    for group in server.get("rules", {})["groups"]:
        before = server.cpu_seconds()
        for rule in group["rules"]:
            server.get_text("query", {"query": rule["query"], "time": now})
        name, spent = group["name"], server.cpu_seconds() - before
        yield RuleGroup(name, group["interval"], longest[name], spent)
