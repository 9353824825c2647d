"""Comparison of SQL time in Keystone and in the database."""

import io
import time

import pytest
from rich.console import Console

from keylag import sql_comparison
from keylag.breakdown import Breakdown, name_run
from keylag.sql_comparison import SqlTotals, subtract_totals

LATER = 60.0


def totals_of(statements: float = 10, server: float = 0.01) -> SqlTotals:
    """Return totals with 0.03 s in Keystone's driver."""
    return SqlTotals(statements, statements, 0.03, server)


def test_subtract_totals_drops_idle_methods() -> None:
    now = {"POST": SqlTotals(30, 30, 0.5, 0.2), "GET": totals_of()}

    added = subtract_totals(
        now, {"POST": SqlTotals(10, 10, 0.25, 0.1), "GET": totals_of()}
    )

    assert added == {"POST": SqlTotals(20, 20, 0.25, 0.1)}


@pytest.mark.parametrize(
    ("counts", "scrapes", "waits"),
    [((1, 2, 2), (LATER,), 2), ((2, 2, 2), (-LATER, LATER), 2), ((2, 2), (LATER,), 1)],
    ids=["readings differ", "scraped too early", "complete"],
)
def test_wait_for_totals_waits_until_two_readings_agree(
    monkeypatch, counts, scrapes, waits
) -> None:
    totals = iter([{"GET": totals_of(count)} for count in counts])
    moments = iter([{"": time.time() + later} for later in scrapes])
    monkeypatch.setattr(sql_comparison, "read_totals", lambda *_: next(totals))
    monkeypatch.setattr(sql_comparison, "query_prometheus", lambda *_: next(moments))
    pauses: list[float] = []

    found = sql_comparison.wait_for_totals(None, wait=pauses.append)  # type: ignore[arg-type]

    assert found == {"GET": totals_of(2)}
    assert len(pauses) == waits


def test_table_shows_mean_statement_times() -> None:
    empty = Breakdown(
        calls=[], setup_requests=0, quantiles="", warnings=[], environment={}
    )
    run = name_run("cache-off", empty)
    run["sql_sides"] = {"GET": vars(totals_of())}
    console = Console(file=io.StringIO(), width=120)

    sql_comparison.render_table([run], console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "SQL of /v3/auth/tokens, in Keystone and in the database" in text
    assert text.split("cache-off")[1].split()[1:10:2] == [
        "10",
        "10",
        "3.000",
        "1.000",
        "2.000",
    ]


def test_queries_select_one_run(monkeypatch) -> None:
    """Counters of earlier runs stay visible in Prometheus."""
    queries: list[str] = []

    def ask(_: object, query: str) -> dict[str, float]:
        queries.append(query)
        return {"GET": 1.0}

    monkeypatch.setattr(sql_comparison, "query_prometheus", ask)

    assert sql_comparison.read_totals(None, "cache-off") == {
        "GET": SqlTotals(1, 1, 1, 1)
    }  # type: ignore[arg-type]
    assert sum('keylag_run="cache-off"' in query for query in queries) == 2
    assert not any("%" in query for query in queries)
