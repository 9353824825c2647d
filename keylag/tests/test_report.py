"""Report tables in the terminal, and the HTML page."""

import io
import re
from pathlib import Path

import pytest
from fake_keystone import TIMING
from rich.console import Console

from keylag.breakdown import Run, compute_breakdown, name_run
from keylag.jtl import Sample
from keylag.report import render_terminal, write_html
from keylag.report.formatting import group_by_call
from keylag.report.html import layout_bars
from keylag.server_timing import parse_server_timing


def run(name: str, *, timing: str | None = TIMING, label: str = "GET /v3/x") -> Run:
    """Return a run of two requests: 20 ms at the client, 10 ms in Keystone."""
    server = parse_server_timing(timing) if timing else None
    one = Sample(0, 0.02, 0.02, 0, label, "200", "", "t", True, 1, server)  # noqa: FBT003
    return name_run(name, compute_breakdown([one, one], {"cache_backend": "<null>"}))


def terminal(*runs: Run) -> str:
    """Return the terminal output without colours."""
    console = Console(file=io.StringIO(), width=120)
    render_terminal(runs, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_tables_show_categories_sum_and_counts() -> None:
    text = terminal(run("cache-off"), run("memcache-pool"))

    assert re.search(r"cache-off +│ +2 │ +20.0 │ +20.0 │", text)
    assert re.search(r"password hash +│ +5.00 │ +50.0 % │ +5.00 │ +50.0 %", text)
    assert re.search(r"sum +│ +10.00 │ +100.0 % │ +10.00 │ +100.0 %", text)
    assert re.search(r"wall time +│ +10.00 │", text)
    assert re.search(r"SQL statements +│ +6.0 │", text)
    assert "Lower [identity] password_hash_rounds" in " ".join(text.split())


def test_missing_measurements_show_a_dash() -> None:
    text = terminal(run("bare", timing=None))

    assert re.search(r"SQL +│ +- │ +- │", text)
    assert "sent no Server-Timing" in text


def test_page_is_self_contained_and_escaped(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"

    write_html([run("cache-off"), run("memcache-pool")], path)

    page = path.read_text()
    assert not re.search(r"(?:src|href)=|@import|https?://", page)
    assert "&lt;null&gt;" in page
    assert page.count("<p>What may help:</p>\n<ul>\n<li>") == 2
    assert "<li>Lower [identity] password_hash_rounds" in page
    assert page.count('role="img"') == 2
    assert "<script" not in page


@pytest.mark.parametrize("runs", [[], [run("bare", timing=None)]])
def test_page_renders_without_measurements(runs: list[Run], tmp_path: Path) -> None:
    write_html(runs, tmp_path / "report.html")

    assert "How it was measured" in (tmp_path / "report.html").read_text()


def test_bar_segments_cover_the_clients_latency() -> None:
    (group,) = group_by_call([run("cache-off")])
    (bar,) = layout_bars(group)

    edges = [0.0]
    for segment in bar.segments:
        assert segment.left == pytest.approx(edges[-1])
        edges.append(segment.left + segment.width)
    assert edges[-1] == pytest.approx(100)
    assert bar.segments[-1].category == "outside"
    assert bar.segments[-1].width == pytest.approx(50)


def test_runs_are_grouped_by_call() -> None:
    runs = [
        run("a", label="GET /x"),
        run("b", label="GET /x"),
        run("c", label="PUT /x"),
    ]

    groups = [[shown.run["name"] for shown in group] for group in group_by_call(runs)]

    assert groups == [["a", "b"], ["c"]]
