"""SQL time in the client and in the server, and the table of both."""

import io
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests
from rich.console import Console

from keylag import sql_comparison
from keylag.breakdown import Breakdown, name_run
from keylag.jtl import Sample
from keylag.server_timing import ServerTiming
from keylag.sql_comparison import (
    Logged,
    SqlTotals,
    compare_sides,
    parse_exposition,
    wait_for_logged,
)

SAMPLE = Sample(
    start_seconds=1.0,
    elapsed_seconds=0.2,
    latency_seconds=0.2,
    connect_seconds=0.0,
    label="POST /v3/auth/tokens password",
    code="201",
    message="",
    thread="t",
    success=True,
    size_bytes=1,
    timing=ServerTiming(
        total_seconds=0.1,
        categories={"sql": 0.04},
        cells={
            ("sql", "authenticate"): 0.01,
            ("sql", "issue"): 0.02,
            ("sql_pool", "issue"): 0.01,
        },
        counts={"sql_statements": 5},
    ),
)


def exposition(count: int, behind: int = 0) -> str:
    """Return an exporter's text: `count` statements of each method."""
    name = "keylag_slow_log_statement_duration_seconds"
    lines = [f"# TYPE {name} histogram", "# TYPE keylag_slow_log_behind_bytes gauge"]
    for table in ("user", "role"):
        for route in ("POST /v3/auth/tokens", "GET /v3/users", ""):
            labels = f'{{route="{route}",table_class="{table}"}}'
            lines += [f"{name}_count{labels} {count}", f"{name}_sum{labels} 0.5"]
    lines += [f"keylag_slow_log_behind_bytes {behind}"]
    return "\n".join(lines) + "\n"


def test_statements_of_token_calls_are_summed_by_method() -> None:
    assert parse_exposition(exposition(3, behind=7)) == ({"POST": Logged(6, 1.0)}, 7)


def test_an_exporter_without_a_slow_log_has_unread_bytes() -> None:
    assert parse_exposition("up 1\n") == ({}, math.inf)


class Exposed:
    """The answers of an exporter, one after the other."""

    def __init__(self, texts: list[str]) -> None:
        self.texts: Iterator[str] = iter(texts)
        self.ports: list[str] = []

    def url(self, port: str) -> str:
        self.ports.append(port)
        return "http://127.0.0.1:1"

    def get(self, url: str, **_: object) -> requests.Response:
        assert url == "http://127.0.0.1:1/metrics"
        answer = requests.Response()
        answer.status_code = 200
        answer._content = next(self.texts).encode()
        return answer


@pytest.mark.parametrize(
    ("texts", "waits"),
    [
        ([exposition(1), exposition(2), exposition(2)], 2),
        ([exposition(2, behind=9), exposition(2, behind=9), exposition(2)], 2),
        ([exposition(2), exposition(2)], 1),
    ],
    ids=["readings differ", "the log is not read to its end", "all is there"],
)
def test_reading_waits_until_the_log_is_read(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], waits: int
) -> None:
    exposed = Exposed(texts)
    monkeypatch.setattr(sql_comparison.requests, "get", exposed.get)
    waited: list[float] = []

    found = wait_for_logged(exposed, wait=waited.append)  # type: ignore[arg-type]

    assert found == {"POST": Logged(4, 1.0)}
    assert len(waited) == waits
    assert set(exposed.ports) == {"exporters"}


def labelled(label: str) -> Sample:
    return replace(SAMPLE, label=label)


def test_both_sides_hold_the_token_calls_of_the_run() -> None:
    samples = [
        SAMPLE,
        labelled("setup POST /v3/auth/tokens"),
        labelled("GET /v3/users"),
        replace(SAMPLE, timing=None),
    ]

    found = compare_sides(
        samples, {"POST": Logged(100, 1.0)}, {"POST": Logged(110, 1.25)}
    )

    assert list(found) == ["POST"]
    assert found["POST"].statements == 10
    assert found["POST"].logged == 10
    assert found["POST"].client_seconds == pytest.approx(0.06)
    assert found["POST"].server_seconds == pytest.approx(0.25)


def test_a_method_that_is_new_in_the_log_began_at_zero() -> None:
    found = compare_sides([SAMPLE], {}, {"POST": Logged(5, 0.5)})

    assert (found["POST"].logged, found["POST"].server_seconds) == (5, 0.5)


def test_the_table_has_the_mean_of_a_statement() -> None:
    empty = Breakdown(
        calls=[], setup_requests=0, quantiles="", warnings=[], environment={}
    )
    run = name_run("cache-off", empty)
    run["sql_sides"] = {"GET": vars(SqlTotals(10, 10, 0.03, 0.01))}
    console = Console(file=io.StringIO(), width=120)

    sql_comparison.render_table([run], console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "SQL of /v3/auth/tokens, in Keystone and in the database" in text
    row = text.split("cache-off")[1].split()
    assert row[1:10:2] == ["10", "10", "3.000", "1.000", "2.000"]
