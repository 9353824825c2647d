"""SQL from both sides: differences, settling, and the table."""

import io
import time

import pytest
from rich.console import Console

from keylag import sql_sides
from keylag.breakdown import Breakdown, named
from keylag.sql_sides import Sides, since

LATER = 60.0


def sides(statements: float = 10, server: float = 0.01) -> Sides:
    """Make totals in which Keystone waited 0.03 s."""
    return Sides(statements, statements, 0.03, server)


def test_only_what_was_added_counts() -> None:
    """Totals of before are taken away; methods that were quiet are left out."""
    now = {"POST": Sides(30, 30, 0.5, 0.2), "GET": sides()}

    added = since(now, {"POST": Sides(10, 10, 0.25, 0.1), "GET": sides()})

    assert added == {"POST": Sides(20, 20, 0.25, 0.1)}


@pytest.mark.parametrize(
    ("counts", "looked", "waits"),
    [((1, 2, 2), (LATER,), 2), ((2, 2, 2), (-LATER, LATER), 2), ((2, 2), (LATER,), 1)],
    ids=["two looks differ", "both sides were looked at too early", "all is there"],
)
def test_it_waits_for_what_is_on_its_way(monkeypatch, counts, looked, waits) -> None:
    """Two looks agree, and the later one is late enough."""
    totals = iter([{"GET": sides(count)} for count in counts])
    moments = iter([{"": time.time() + later} for later in looked])
    monkeypatch.setattr(sql_sides, "read", lambda *_: next(totals))
    monkeypatch.setattr(sql_sides, "ask", lambda *_: next(moments))
    waited: list[float] = []

    found = sql_sides.settled(None, wait=waited.append)  # type: ignore[arg-type]

    assert found == {"GET": sides(2)}
    assert len(waited) == waits


def test_the_table_has_the_mean_of_a_statement() -> None:
    """Milliseconds in Keystone, in the database, and between them."""
    empty = Breakdown(
        calls=[], setup_requests=0, quantiles="", warnings=[], environment={}
    )
    run = named("cache-off", empty)
    run["sql_sides"] = {"GET": vars(sides())}
    console = Console(file=io.StringIO(), width=120)

    sql_sides.render([run], console)

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "SQL of /v3/auth/tokens from both sides" in text
    assert text.split("cache-off")[1].split()[1:10:2] == [
        "10",
        "10",
        "3.000",
        "1.000",
        "2.000",
    ]


def test_the_queries_ask_for_one_run(monkeypatch) -> None:
    """A Keystone of another run, whose counters stay visible, is left out."""
    asked: list[str] = []

    def ask(_: object, query: str) -> dict[str, float]:
        asked.append(query)
        return {"GET": 1.0}

    monkeypatch.setattr(sql_sides, "ask", ask)

    assert sql_sides.read(None, "cache-off") == {"GET": Sides(1, 1, 1, 1)}  # type: ignore[arg-type]
    assert sum('keylag_run="cache-off"' in query for query in asked) == 2
    assert not any("%" in query for query in asked)
