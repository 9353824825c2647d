"""The outermost layer: responses are unchanged and every nanosecond is counted."""

from __future__ import annotations

from typing import Any

import pytest
from osprofiler._utils import signed_pack

from keylag_otel import telemetry
from keylag_otel.request import TimedApplication
from keylag_otel.request_aggregator import AGGREGATOR
from keylag_otel.request_timer import timer_var
from keylag_otel.server_timing import is_signed
from keylag_otel.wrappers import timed

HEADERS = [("Content-Type", "text/plain")]


@pytest.fixture(autouse=True)
def aggregator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "start_once_per_process", lambda: None)
    AGGREGATOR.reset()


def totals() -> dict[str, float]:
    """Nanoseconds in the aggregator, by phase."""
    return {
        attributes["keystone.phase"]: round(seconds * 1e9)
        for seconds, attributes in AGGREGATOR.phase_seconds()
    }


def statuses() -> list[int]:
    return [
        a["http.response.status_code"]
        for _, a in AGGREGATOR.request_counts("cache_calls")
    ]


def call(application: Any, **environ: str) -> tuple[Any, list[Any]]:
    started: list[Any] = []

    def start_response(*args: Any) -> str:
        started.append(args)
        return "write"

    body = TimedApplication(application)(
        {"REQUEST_METHOD": "GET", **environ}, start_response
    )
    return body, started


def test_list_body_is_returned_unchanged(time) -> None:
    answer = [b"a", b"b"]

    def application(environ: Any, start_response: Any) -> list[bytes]:
        time.passes(10)
        assert start_response("201 Created", HEADERS) == "write"
        time.passes(5)
        return answer

    body, started = call(application)

    assert body is answer
    assert started == [("201 Created", HEADERS)]
    assert totals() == {"wsgi": 15}
    assert statuses() == [201]


def test_generating_chunks_is_timed_and_sending_is_not(time) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", HEADERS)
        for part in (b"a", b"b"):
            timed("sql")(time.passes)(10)
            yield part

    body, _ = call(application)
    for _part in body:
        time.passes(1_000)
    body.close()

    assert totals()["sql"] == 20
    assert totals().get("wsgi", 0) == 0


def test_partly_read_body_is_aggregated_once(time) -> None:
    closed = []

    class Body:
        def __iter__(self) -> Any:
            yield b"a"
            yield b"b"

        def close(self) -> None:
            time.passes(7)
            closed.append(timer_var.get())

    def application(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", HEADERS)
        return Body()

    body, _ = call(application)
    assert next(iter(body)) == b"a"
    body.close()
    body.close()

    assert len(closed) == 2
    assert totals() == {"wsgi": 7}
    assert statuses() == [200]


def test_exception_propagates_and_counts_as_500(time) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        time.passes(3)
        raise KeyError

    with pytest.raises(KeyError):
        call(application)

    assert statuses() == [500]
    assert totals() == {"wsgi": 3}


def test_invalid_status_is_passed_on(time) -> None:
    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("no number", HEADERS)
        return []

    _, started = call(application)

    assert started == [("no number", HEADERS)]


def test_nested_applications_are_measured_once(time) -> None:
    def inner(environ: Any, start_response: Any) -> list[bytes]:
        time.passes(4)
        start_response("200 OK", HEADERS)
        return []

    call(TimedApplication(inner))

    assert totals() == {"wsgi": 4}
    assert statuses() == [200]


def test_unknown_method_creates_no_series() -> None:
    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", HEADERS)
        return []

    for letter in "XYZ":
        call(application, REQUEST_METHOD="MAKE-UP-" + letter * 100)

    methods = [
        a["http.request.method"] for _, a in AGGREGATOR.request_counts("cache_calls")
    ]
    assert methods == ["_OTHER"]


@pytest.mark.parametrize("value", ["true", "1", "ON"])
def test_server_timing_adds_up_when_switched_on(time, monkeypatch, value) -> None:
    monkeypatch.setenv("KEYLAG_SERVER_TIMING", value)

    def application(environ: Any, start_response: Any) -> list[bytes]:
        timed("sql", "validate")(time.passes)(1_234_500)
        timed("orm", "check_revocation")(time.passes)(500_000)
        time.passes(1_000_000)
        start_response("200 OK", HEADERS)
        return []

    _, started = call(application)

    (name, header) = started[0][1][-1]
    entries = dict(part.split(";", 1) for part in header.split(", "))
    assert name == "Server-Timing"
    assert list(entries)[:8] == [
        *("total", "sql", "cache", "revocation"),
        *("password_hash", "token_crypto", "orm", "other"),
    ]
    assert entries["total"] == "dur=2.7345"
    assert entries["sql"] == entries["sql.validate"] == "dur=1.2345"
    assert entries["revocation"] == "dur=0.5000"
    assert entries["orm"] == "dur=0.0000"
    assert entries["sql_statements"] == "desc=0"
    assert HEADERS == [("Content-Type", "text/plain")]


@pytest.mark.parametrize(
    ("keys", "key", "answered"),
    [
        ("one", "one", True),
        ("zero, one", "one", True),
        ("one", "other", False),
        ("one", None, False),
        ("", "", False),
    ],
)
def test_server_timing_for_signed_requests(monkeypatch, keys, key, answered) -> None:
    monkeypatch.setenv("KEYLAG_SERVER_TIMING", "signed")
    monkeypatch.setenv("KEYLAG_SERVER_TIMING_KEYS", keys)
    headers = {}
    if key is not None:
        content, sign = signed_pack({"base_id": "x"}, key)
        headers = {
            "HTTP_X_TRACE_INFO": content.decode(),
            "HTTP_X_TRACE_HMAC": sign or "",
        }

    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", HEADERS)
        return []

    _, started = call(application, **headers)

    assert ("Server-Timing" in dict(started[0][1])) is answered


def fail(*_: Any) -> Any:
    message = "no such thing"
    raise LookupError(message)


@pytest.mark.parametrize("broken", ["server_timing.is_signed", "request.server_timing"])
def test_failing_header_leaves_the_response_unchanged(monkeypatch, broken) -> None:
    monkeypatch.setenv("KEYLAG_SERVER_TIMING", "signed")
    monkeypatch.setenv("KEYLAG_SERVER_TIMING_KEYS", "key")
    monkeypatch.setattr(f"keylag_otel.{broken}", fail)
    content, sign = signed_pack({"base_id": "x"}, "key")
    answer = [b"a"]

    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", HEADERS)
        return answer

    body, started = call(
        application, HTTP_X_TRACE_INFO=content.decode(), HTTP_X_TRACE_HMAC=sign
    )

    assert body is answer
    assert started == [("200 OK", HEADERS)]
    assert statuses() == [200]
    assert sum(count for count, _ in AGGREGATOR.counter_values("faults")) == 1


@pytest.mark.parametrize("said", ["é", "\u20ac", "", " "])
def test_invalid_signatures_are_rejected(said) -> None:
    environ = {"HTTP_X_TRACE_HMAC": said, "HTTP_X_TRACE_INFO": said}

    assert not is_signed((b"key",), environ)


def test_server_timing_is_off_by_default(time) -> None:
    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", HEADERS)
        return []

    _, started = call(application)

    assert started[0][1] == HEADERS
