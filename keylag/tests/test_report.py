"""The tables and the page."""

import io
import re
from pathlib import Path

import pytest
from fake_keystone import TIMING
from rich.console import Console

from keylag.breakdown import Run, break_down, named
from keylag.jtl import Sample
from keylag.report import render_terminal, write_html
from keylag.report.html import bars
from keylag.report.rows import by_call
from keylag.server_timing import parse


def run(name: str, *, timing: str | None = TIMING, label: str = "GET /v3/x") -> Run:
    """Make a run of two requests, 20 ms at the client and 10 ms in Keystone."""
    server = parse(timing) if timing else None
    one = Sample(0, 0.02, 0.02, 0, label, "200", "", "t", True, 1, server)  # noqa: FBT003
    return named(name, break_down([one, one], {"cache_backend": "<null>"}))


def terminal(*runs: Run) -> str:
    """Return what is printed, without colours."""
    console = Console(file=io.StringIO(), width=120)
    render_terminal(runs, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_tables_show_parts_that_add_up() -> None:
    """Milliseconds, per cent, counts, and the sum beside the wall time."""
    text = terminal(run("cache-off"), run("memcache-pool"))

    assert re.search(r"cache-off +│ +2 │ +20.0 │ +20.0 │", text)
    assert re.search(r"password hash +│ +5.00 │ +50.0 % │ +5.00 │ +50.0 %", text)
    assert re.search(r"sum +│ +10.00 │ +100.0 % │ +10.00 │ +100.0 %", text)
    assert re.search(r"wall time +│ +10.00 │", text)
    assert re.search(r"SQL statements +│ +6.0 │", text)
    assert "lowering [identity] password_hash_rounds" in " ".join(text.split())


def test_what_was_not_measured_is_no_zero() -> None:
    """A dash, and a sentence that says why."""
    text = terminal(run("bare", timing=None))

    assert re.search(r"SQL +│ +- │ +- │", text)
    assert "sent no Server-Timing" in text


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    """One file that can be mailed, and no text of ours becomes markup."""
    path = tmp_path / "deep" / "report.html"

    write_html([run("cache-off"), run("memcache-pool")], path)

    page = path.read_text()
    assert not re.search(r"(?:src|href)=|@import|https?://", page)
    assert "&lt;null&gt;" in page
    assert page.count("<p>What may help:</p>\n<ul>\n<li>") == 2
    assert "<li>lowering [identity] password_hash_rounds" in page
    assert page.count('role="img"') == 2
    assert "<script" not in page


@pytest.mark.parametrize("runs", [[], [run("bare", timing=None)]])
def test_a_page_of_little_is_still_a_page(runs: list[Run], tmp_path: Path) -> None:
    """Nothing measured is shown as that."""
    write_html(runs, tmp_path / "report.html")

    assert "How it was measured" in (tmp_path / "report.html").read_text()


def test_a_bar_reaches_from_nought_to_the_clients_latency() -> None:
    """Segments follow one another; half of this client's time is outside."""
    (group,) = by_call([run("cache-off")])
    (bar,) = bars(group)

    edges = [0.0]
    for segment in bar.segments:
        assert segment.left == pytest.approx(edges[-1])
        edges.append(segment.left + segment.width)
    assert edges[-1] == pytest.approx(100)
    assert bar.segments[-1].category == "outside"
    assert bar.segments[-1].width == pytest.approx(50)


def test_runs_of_the_same_call_come_together() -> None:
    """The page compares runs call by call."""
    runs = [
        run("a", label="GET /x"),
        run("b", label="GET /x"),
        run("c", label="PUT /x"),
    ]

    groups = [[shown.run["name"] for shown in group] for group in by_call(runs)]

    assert groups == [["a", "b"], ["c"]]
