"""Report tables in the terminal, and the HTML page."""

import io
import re
from pathlib import Path

import pytest
from fake_keystone import TIMING
from rich.console import Console

from keylag.breakdown import Run, compute_breakdown, name_run
from keylag.diagnosis.from_run import diagnose_runs
from keylag.jtl import Sample
from keylag.report import render_terminal, write_html
from keylag.report.formatting import group_by_call
from keylag.report.html import layout_bars
from keylag.server_timing import parse_server_timing

TOKENS = "GET /v3/auth/tokens"
NULL = "dogpile.cache.null"
POOL = "oslo_cache.memcache_pool"
UNCACHED = (
    "total;dur=200, sql_statements;desc=77, sql.roles;dur=90, orm.roles;dur=100,"
    " policy.enforce;dur=2, other.other;dur=8"
)
HASHING = (
    "total;dur=250, sql_statements;desc=4, cache_calls;desc=30,"
    " password_hash.authenticate;dur=230, policy.enforce;dur=1, other.other;dur=19"
)


def run(
    name: str,
    *,
    timing: str | None = TIMING,
    label: str = "GET /v3/x",
    **environment: str,
) -> Run:
    """Return a run of two requests: 20 ms at the client, 10 ms in Keystone."""
    server = parse_server_timing(timing) if timing else None
    one = Sample(0, 0.02, 0.02, 0, label, "200", "", "t", True, 1, server)  # noqa: FBT003
    known = {"cache_backend": "<null>", **environment}
    return name_run(name, compute_breakdown([one, one], known))


def terminal(*runs: Run) -> str:
    """Return the terminal output without colours."""
    console = Console(file=io.StringIO(), width=120)
    render_terminal(runs, diagnose_runs(runs), console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_tables_show_categories_sum_and_counts() -> None:
    text = terminal(run("cache-off"), run("memcache-pool"))

    assert re.search(r"cache-off +│ +2 │ +20.0 │ +20.0 │", text)
    assert re.search(r"password hash +│ +5.00 │ +50.0 % │ +5.00 │ +50.0 %", text)
    assert re.search(r"sum +│ +10.00 │ +100.0 % │ +10.00 │ +100.0 %", text)
    assert re.search(r"wall time +│ +10.00 │", text)
    assert re.search(r"SQL statements +│ +6.0 │", text)


def test_missing_measurements_show_a_dash() -> None:
    text = terminal(run("bare", timing=None))

    assert re.search(r"SQL +│ +- │ +- │", text)
    assert "sent no Server-Timing" in text


def test_page_is_self_contained_and_escaped(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"

    runs = [
        run("cache-off", timing=UNCACHED, label=TOKENS, cache_backend=NULL),
        run("memcache-pool"),
    ]
    write_html(runs, diagnose_runs(runs), path)

    page = path.read_text()
    assert not re.search(r"(?:src|href)=|@import|https?://", page)
    assert "&lt;null&gt;" in page
    assert page.count('role="img"') == 2
    assert "<script" not in page


@pytest.mark.parametrize("runs", [[], [run("bare", timing=None)]])
def test_page_renders_without_measurements(runs: list[Run], tmp_path: Path) -> None:
    write_html(runs, diagnose_runs(runs), tmp_path / "report.html")

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


def test_run_ends_with_its_cause_and_the_lines_to_change(tmp_path: Path) -> None:
    slow = run("cache-off", timing=UNCACHED, label=TOKENS, cache_backend=NULL)
    path = tmp_path / "report.html"

    write_html([slow], diagnose_runs([slow]), path)

    end = terminal(slow).partition("Diagnosis of cache-off")[2]
    for shown in (end, path.read_text()):
        text = " ".join(shown.split())
        assert "1. Keystone does not cache" in text
        assert "[cache] backend = oslo_cache.memcache_pool" in text
        assert "Risk: " in text
        assert "Without it, GET saves" in text
        assert "a load has no metrics that tell" in text


def test_healthy_run_says_so_and_names_the_largest_part(tmp_path: Path) -> None:
    login = "POST /v3/auth/tokens password"
    healthy = run("memcache-pool", timing=HASHING, label=login, cache_backend=POOL)
    path = tmp_path / "report.html"

    write_html([healthy], diagnose_runs([healthy]), path)

    for text in (terminal(healthy), path.read_text()):
        words = " ".join(text.split())
        assert "Nothing stands out" in words
        assert "the largest part is password hash, 92 % of the server" in words
        assert "password_hash_rounds" not in words


def test_cause_of_a_services_load_is_unknown() -> None:
    """Its calls look like validations without a cache, and are none."""
    service = run("s", timing=UNCACHED, label="GET /", plan="service-call")

    end = " ".join(terminal(service).partition("Diagnosis of s")[2].split())

    assert end.startswith("The causes are those of Keystone's token calls, and this")
    assert "M1, M2" in end
    assert "memcache_pool" not in end


def test_calls_of_other_routes_have_no_cause() -> None:
    other = run("x", timing=UNCACHED, label="GET /v3/users", cache_backend=NULL)

    end = " ".join(terminal(other).partition("Diagnosis of x")[2].split())

    assert end.startswith("The causes are those of Keystone's token calls, and none")


def test_run_without_measurements_has_no_cause() -> None:
    assert "No call was measured" in terminal(run("x", timing=None))
