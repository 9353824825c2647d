"""The rules in a real Prometheus that scrapes a Keystone whose calls all fail."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from keylag.ports import allocate_ports
from keylag_dashboards import __main__ as generator

Found = TypeVar("Found")
TIMEOUT_SECONDS = 60
"""Timeout; evaluations run once a second."""
CALLS = """http_route="/v3/auth/tokens",http_request_method="POST",\
http_response_status_code="500\""""
METRICS = f"""\
keystone_configuration_info{{instance="a/1"}} 1
http_server_request_duration_seconds_count{{{CALLS}}} %d
http_server_request_duration_seconds_bucket{{{CALLS},le="1"}} %d
"""
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: keystone
    honor_labels: true
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@pytest.fixture
def keystone() -> Iterator[int]:
    """Serve counters that grow with each scrape; all calls fail with 500."""
    answered = count(300, 60)

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls = next(answered)
            self.send_response(200)
            self.end_headers()
            self.wfile.write((METRICS % (calls, calls)).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def prometheus(keystone, tmp_path) -> Iterator[Callable[..., Any]]:
    """Start Prometheus with the generated rules; yield a function for its API."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("not installed: prometheus")
    config = tmp_path / "prometheus.yml"
    generated = yaml.safe_load((generator.FOLDER / "rules" / "keylag.yml").read_text())
    for group in generated["groups"]:
        group.pop("interval", None)
    rules = tmp_path / "rules.yml"
    rules.write_text(yaml.safe_dump(generated))
    config.write_text(CONFIG.format(rules=rules, port=keystone))
    (port,) = allocate_ports(["prometheus"], {}).values()
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]

    def query_api(path: str, **parameters: str) -> Any:
        address = f"http://127.0.0.1:{port}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]

    with subprocess.Popen(command) as process:
        yield query_api
        process.terminate()


def wait(attempt: Callable[[], Found | None]) -> Found:
    """Call `attempt` until it returns something; return that."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            if found := attempt():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail(f"nothing within {TIMEOUT_SECONDS} seconds")


def both(alerts: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the fast and the slow alert, or None while one is not pending yet."""
    return alerts if len(alerts) == 2 else None


def all_evaluated(groups: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return all rules, or None if some were not evaluated yet."""
    found = [rule for group in groups for rule in group["rules"]]
    return None if any(one["health"] == "unknown" for one in found) else found


def test_prometheus_evaluates_every_rule(prometheus) -> None:
    """The budget burns although no call succeeds."""
    query = "keylag:token_calls_not_in_time:ratio_rate5m == 1"
    pending = 'ALERTS{alertname=~"KeylagTokenLatencyBurns.*"}'

    wait(lambda: prometheus("query", query=query)["result"])
    burning = wait(lambda: both(prometheus("query", query=pending)["result"]))
    rules = wait(lambda: all_evaluated(prometheus("rules")["groups"]))

    assert {one["metric"]["job"] for one in burning} == {"keystone"}
    for rule in rules:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]
