"""`keylag probe`: the table, the conclusion and the exit codes."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from keylag.cli import main
from keylag.hops import HOP_NAMES, MEANINGS, NO_SUCCESS, summarize
from keylag_exporters.http_probe import PHASES, STATUS, ProbeResult

DELAY = 0.1


class _Handler(BaseHTTPRequestHandler):
    """Answers /v3 after a delay, and 404 elsewhere."""

    def do_GET(self) -> None:
        time.sleep(DELAY)
        self.send_response(200 if self.path == "/v3" else 404)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def probe(*words: str) -> Result:
    return CliRunner().invoke(main, ["probe", *words])


def test_table_has_the_hops_and_names_the_slowest(url: str) -> None:
    result = probe(f"{url}/v3", "--count=3", "--interval=0")
    lines = result.stdout.splitlines()

    assert result.exit_code == 0
    assert lines[0] == f"{url}/v3, 3 probes"
    hops = [line.split()[0] for line in lines[1:7]]
    assert hops == ["hop", "DNS", "connect", "wait", "transfer", "total"]
    assert lines[-1].startswith("Wait costs most: ")
    assert lines[-1].endswith(MEANINGS["processing"])


def test_json_has_seconds(url: str) -> None:
    result = probe(f"{url}/v3", "--count=3", "--interval=0", "--output=json")
    document = json.loads(result.stdout)
    wait = document["phases"]["processing"]

    assert document["url"] == f"{url}/v3"
    assert (document["probes"], document["failures"]) == (3, [])
    assert list(document["phases"]) == ["resolve", "connect", "processing", "transfer"]
    assert DELAY <= wait["p50"] <= wait["p95"] <= wait["max"]
    assert document["total"]["p50"] > wait["p50"]
    assert document["slowest"] == "processing"


def test_failed_probes_end_with_code_1_and_the_reason(url: str) -> None:
    result = probe(f"{url}/v2.0", "--count=2", "--interval=0")

    assert result.exit_code == 1
    assert NO_SUCCESS in result.stdout
    reason = "2 of 2 probes failed at status: the response has status 404."
    assert reason in result.stdout


def test_probes_start_at_the_interval(url: str) -> None:
    started = time.monotonic()
    probe(f"{url}/v3", "--count=3", "--interval=0.4")

    assert time.monotonic() - started >= 0.8


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["keystone:5000"], 2, "a URL is such as http://keystone:5000/v3"),
        (["--count=0"], 2, "0 is not in the range"),
        (["--timeout=0"], 2, "0.0 is not in the range"),
        (["http://k/v3", "--tls-ca=/nonexistent"], 2, "does not exist"),
        (["https://k/v3", f"--tls-ca={__file__}"], 2, "tls-ca: cannot read"),
    ],
)
def test_wrong_usage_is_named(words: list[str], code: int, message: str) -> None:
    result = probe(*words)

    assert result.exit_code == code
    assert message in result.stderr


def test_default_is_the_stack_which_has_to_run(tmp_path: Path) -> None:
    result = probe(f"--state={tmp_path}")

    assert result.exit_code == 1
    assert "Start one with `keylag up`, or give a URL." in result.stderr


@pytest.mark.parametrize("phase", PHASES)
def test_conclusion_names_the_phase_with_the_greatest_median(phase: str) -> None:
    seconds = {**dict.fromkeys(PHASES, 0.001), phase: 0.006}
    outlier = dict.fromkeys(PHASES, 1.0)
    results = [ProbeResult(seconds, 200, "", "")] * 3
    hops = summarize([*results, ProbeResult(outlier, 200, "", "")])

    assert hops.slowest == phase
    name = HOP_NAMES[phase].lower()
    expected = (
        f"{name} costs most: 6.00 of 10.00 ms (60.0 %). {MEANINGS[phase].lower()}"
    )
    assert hops.conclusion.lower() == expected


def test_failures_are_counted_by_phase_and_reason() -> None:
    works = ProbeResult({"resolve": 0.1, "connect": 0.1}, 200, "", "")
    refused = ProbeResult({"resolve": 0.3}, 0, "connect", "Connection refused")
    missing = ProbeResult({"resolve": 0.3}, 404, STATUS, "the response has status 404")
    hops = summarize([works, refused, missing, refused])

    assert hops.failures == {
        ("connect", "Connection refused"): 2,
        (STATUS, "the response has status 404"): 1,
    }
    assert hops.phases["resolve"].max == 0.3
    assert hops.phases["connect"].max == 0.1
    assert "costs most" in hops.conclusion
