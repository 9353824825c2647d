"""Reading of traces from each kind of location."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sample_trace import CANARY, OTEL_ID, TRACE_ID, otlp

from keylag.trace.model import Trace, TraceError
from keylag.trace.sources import read_complete, read_trace

REPORT = Path(__file__).parent / "data" / "osprofiler.json"
"""Ten points of a validation, from `osprofiler trace show --json`."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A server that returns the documents in `answers` by path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers: dict[str, Any] = self.server.answers  # type: ignore[attr-defined]
            known = self.path in answers
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.answers = {}  # type: ignore[attr-defined]
        Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


def check(trace: Trace) -> None:
    """Assert that this is the sample trace."""
    (root,) = trace.spans
    assert root.attributes["http.route"] == "/v3/auth/tokens"
    assert root.seconds == pytest.approx(0.1)
    assert [child.name for child in root.children] == ["SELECT", "get", "roles"]
    assert [child.name for child in root.children[2].children] == ["SELECT", "SELECT"]
    assert CANARY not in repr(trace.spans)


@pytest.mark.parametrize(
    ("location", "path", "answer"),
    [
        ("tempo+http", "/api/traces", otlp()),
        ("tempo+http", "/api/traces", {"batches": otlp()["resourceSpans"]}),
        ("jaeger+http", "/api/v3/traces", {"result": otlp()}),
    ],
)
def test_tempo_and_jaeger_traces_are_read(
    server: HTTPServer, location: str, path: str, answer: dict[str, Any]
) -> None:
    server.answers = {f"{path}/{OTEL_ID}": answer}  # type: ignore[attr-defined]
    port = server.server_address[1]

    check(read_trace(f"{location}://127.0.0.1:{port}", TRACE_ID))


def test_password_of_a_store_is_sent_and_not_shown(server: HTTPServer) -> None:
    server.answers = {f"/api/traces/{OTEL_ID}": otlp()}  # type: ignore[attr-defined]
    place = f"127.0.0.1:{server.server_address[1]}"

    trace = read_trace(f"tempo+http://user:{CANARY}@{place}", TRACE_ID)

    assert trace.source == f"tempo+http://{place}"
    with pytest.raises(TraceError) as missing:
        read_trace(f"tempo+http://user:{CANARY}@127.0.0.1:1", TRACE_ID)
    assert CANARY not in str(missing.value)


@pytest.mark.parametrize("location", ["tempo+http", "jaeger+http"])
def test_missing_trace_error_names_the_location(
    server: HTTPServer, location: str
) -> None:
    port = server.server_address[1]

    with pytest.raises(
        TraceError, match=f"There is no trace {TRACE_ID} in {re.escape(location)}:"
    ):
        read_trace(f"{location}://127.0.0.1:{port}", TRACE_ID)


def test_collector_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    groups = otlp()["resourceSpans"]
    lines = [json.dumps({"resourceSpans": [group]}) for group in groups]
    path.write_text("\n".join(lines) + "\n")

    check(read_trace(str(path)))
    check(read_trace(str(path), TRACE_ID))


def test_line_that_the_collector_still_writes_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    text = json.dumps(otlp())
    path.write_text(f"{text}\n{text[:100]}")

    check(read_trace(str(path), TRACE_ID))


def test_file_with_two_traces_needs_an_id(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    other = json.dumps(otlp()).replace(OTEL_ID, "ab" * 16)
    path.write_text(json.dumps(otlp()) + "\n" + other)

    check(read_trace(str(path), TRACE_ID))
    with pytest.raises(TraceError, match=f"has 2 traces.*{OTEL_ID}, abab"):
        read_trace(str(path))


def test_osprofiler_report_is_read_in_microseconds() -> None:
    trace = read_trace(str(REPORT))

    (root,) = trace.spans
    assert trace.id == "b51f9282-036b-4810-b188-0981d538fc00"
    assert (root.name, len(root.children)) == ("wsgi", 7)
    assert root.seconds == pytest.approx(1.925035, abs=1e-6)
    assert root.children[0].seconds == pytest.approx(0.007506, abs=1e-6)
    assert root.children[0].cell == ("sql", "other")
    assert "canary" in REPORT.read_text()
    assert "canary" not in repr(trace.spans)


def test_read_complete_rejects_an_incomplete_trace(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    text = json.dumps(otlp())
    path.write_text(text.replace("http.request.method", "other"))

    with pytest.raises(TraceError, match=f"later: keylag explain {TRACE_ID}"):
        read_complete(str(path), TRACE_ID, timeout_seconds=0)
    path.write_text(text)
    check(read_complete(str(path), TRACE_ID, timeout_seconds=0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no JSON", "cannot be read as JSON"),
        ("[]", "not a JSON object"),
        ('{"resourceSpans": [{"a": 1}]}', "neither OSProfiler nor OTLP JSON"),
        ("{}", "has 0 traces"),
        ('{"children": []}', "There is no trace"),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)

    with pytest.raises(TraceError, match=message) as caught:
        read_trace(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("smoke://signals", "smoke:// is not supported"),
        ("redis://:canary@127.0.0.1:x/0", "redis://127.0.0.1:x/0 cannot be read"),
        ("mysql+pymysql://u:canary@127.0.0.1:1/d", "127.0.0.1:1/d cannot be read"),
        ("elasticsearch://127.0.0.1:1", "please install `elasticsearch`"),
        (
            "tempo+http://127.0.0.1:1",
            "Traces cannot be read from tempo|Traces cannot be read from http",
        ),
    ],
)
def test_unreadable_location_error_hides_the_password(
    location: str, message: str
) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        read_trace(location, TRACE_ID)
    assert "canary" not in str(caught.value)
