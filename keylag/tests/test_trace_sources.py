"""Each place that traces are read from, in the form that it answers in."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from trace_shapes import CANARY, OTEL_ID, TRACE_ID, otlp

from keylag.trace.model import Trace, TraceError
from keylag.trace.sources import read, read_whole
from keylag.trace.sources.place import in_words

REPORT = Path(__file__).parent / "data" / "osprofiler.json"
"""What `osprofiler trace show --json` gave of a validation; ten of its points."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A server that gives what is in `answers` by path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers: dict[str, Any] = self.server.answers  # type: ignore[attr-defined]
            known = self.path in answers
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.answers = {}  # type: ignore[attr-defined]
        Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


def check(trace: Trace) -> None:
    """Assert that it is the trace of `trace_shapes`."""
    (root,) = trace.spans
    assert root.attributes["http.route"] == "/v3/auth/tokens"
    assert root.seconds == pytest.approx(0.1)
    assert [child.name for child in root.children] == ["SELECT", "get", "roles"]
    assert [child.name for child in root.children[2].children] == ["SELECT", "SELECT"]
    assert CANARY not in repr(trace.spans)


@pytest.mark.parametrize(
    ("place", "path", "answer"),
    [
        ("tempo+http", "/api/traces", otlp()),
        ("tempo+http", "/api/traces", {"batches": otlp()["resourceSpans"]}),
        ("jaeger+http", "/api/v3/traces", {"result": otlp()}),
    ],
)
def test_tempo_and_jaeger(
    server: HTTPServer, place: str, path: str, answer: dict[str, Any]
) -> None:
    """Asked by the id as OpenTelemetry writes it, for one that has dashes."""
    server.answers = {f"{path}/{OTEL_ID}": answer}  # type: ignore[attr-defined]
    port = server.server_address[1]

    check(read(f"{place}://127.0.0.1:{port}", TRACE_ID))


@pytest.mark.parametrize("place", ["tempo+http", "jaeger+http"])
def test_a_trace_that_is_not_there(server: HTTPServer, place: str) -> None:
    """Is told, with the place."""
    port = server.server_address[1]

    with pytest.raises(
        TraceError, match=f"There is no trace {TRACE_ID} in {re.escape(place)}:"
    ):
        read(f"{place}://127.0.0.1:{port}", TRACE_ID)


def test_the_files_of_the_collector(tmp_path: Path) -> None:
    """One object a line; the only trace needs no id."""
    path = tmp_path / "traces.json"
    groups = otlp()["resourceSpans"]
    lines = [json.dumps({"resourceSpans": [group]}) for group in groups]
    path.write_text("\n".join(lines) + "\n")

    check(read(str(path)))
    check(read(str(path), TRACE_ID))


def test_a_file_with_two_traces_needs_an_id(tmp_path: Path) -> None:
    """The message names those that there are."""
    path = tmp_path / "traces.json"
    other = json.dumps(otlp()).replace(OTEL_ID, "ab" * 16)
    path.write_text(json.dumps(otlp()) + "\n" + other)

    check(read(str(path), TRACE_ID))
    with pytest.raises(TraceError, match=f"has 2 traces.*{OTEL_ID}, abab"):
        read(str(path))


def test_a_report_of_osprofiler() -> None:
    """To the microsecond, which its own times are not; without parameters."""
    trace = read(str(REPORT))

    (root,) = trace.spans
    assert trace.id == "b51f9282-036b-4810-b188-0981d538fc00"
    assert (root.name, len(root.children)) == ("wsgi", 7)
    assert root.seconds == pytest.approx(1.925035, abs=1e-6)
    assert root.children[0].seconds == pytest.approx(0.007506, abs=1e-6)
    assert root.children[0].cell == ("sql", "other")
    assert "canary" in REPORT.read_text()
    assert "canary" not in repr(trace.spans)


def test_a_trace_that_is_still_arriving_is_waited_for(tmp_path: Path) -> None:
    """Without the request's own span, which comes last, it is not whole."""
    path = tmp_path / "traces.json"
    text = json.dumps(otlp())
    path.write_text(text.replace("http.request.method", "other"))

    with pytest.raises(TraceError, match=f"later: keylag explain {TRACE_ID}"):
        read_whole(str(path), TRACE_ID, patience=0)
    path.write_text(text)
    check(read_whole(str(path), TRACE_ID, patience=0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON", "cannot be read as JSON"),
        ("[]", "it is no object"),
        ('{"resourceSpans": [{"a": 1}]}', "neither OSProfiler's nor OTLP's"),
        ("{}", "has 0 traces"),
        ('{"children": []}', "There is no trace"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """In one sentence that names the file."""
    path = tmp_path / "file.json"
    path.write_text(text)

    with pytest.raises(TraceError, match=said) as told:
        read(str(path))
    assert str(path) in str(told.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("smoke://signals", "not from smoke"),
        ("redis://:canary@127.0.0.1:x/0", "redis://127.0.0.1:x/0 cannot be read"),
        ("mysql+pymysql://u:canary@127.0.0.1:1/d", "127.0.0.1:1/d cannot be read"),
        ("elasticsearch://127.0.0.1:1", "please install `elasticsearch`"),
        ("tempo+http://127.0.0.1:1", "does not give its traces"),
    ],
)
def test_a_place_that_does_not_answer(place: str, said: str) -> None:
    """Is told, without a password."""
    with pytest.raises(TraceError, match=said) as told:
        read(place, TRACE_ID)
    assert "canary" not in str(told.value)


def test_a_place_in_words_has_no_password() -> None:
    """Nor its options."""
    assert in_words("redis://:p@ss@host:1/2?x=y") == "redis://host:1/2"
    assert in_words("trace.json") == "trace.json"
