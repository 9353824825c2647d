"""All dashboards in Grafana, in a browser; screenshots go to out/grafana.

The tests compare no pixels: they read titles, legends, ticks, tables and places.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

import pytest
import requests
from panel_checks import empty_titles, find_faults, is_empty
from playwright.sync_api import Browser, Page, Request
from prometheus_copy import prometheus_without
from traced_calls import send_until_exemplar

from keylag.jtl import Sample
from keylag.paths import CHECKOUT
from keylag.services import is_installed
from keylag.stack import Stack
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import GENERATED
from keylag_dashboards.config import COARSE, FINE, RECORDING_SECONDS, UID_PREFIX
from keylag_dashboards.model import Board
from keylag_dev.grafana_page import (
    CHROMIUM,
    ShownPanel,
    new_page,
    open_dashboard,
    read_links,
    read_panels,
    read_rows,
    set_width,
    start_browser,
    take_picture,
)

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not is_installed("grafana"), reason="no `grafana` on the PATH"),
    pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on the PATH"),
]
PICTURES: Final = CHECKOUT / "out" / "grafana"
WIDTHS: Final = (1280, 1920)
KEPT: Final = {"var-job": "keystone"}
"""A choice that links keep."""
EARLIER_SECONDS: Final = 300
"""The dashboards show this much of the time before the last load."""
RECORDED_SECONDS: Final = 2 * RECORDING_SECONDS
"""After this time the recording rules have seen the calls."""
OTHER_SOURCE: Final = "mine"
NOT_INSTALLED: Final = "not installed"
"""What the title of a row says if its exporter does not run."""
METRICS: Final = {
    "keylag-otel": "(keylag:[^lu]|http_server_|keystone_|process_cpu_|cpython_gc_).+",
    "slow-log": "(keylag_slow_log_|keylag:logged_).+",
    "revocations": "keylag_revocations_.+",
    "memcached": "memcached_.+",
    "uwsgi": "(keylag_uwsgi_|keylag:uwsgi_).+",
    "diagnose": "keylag_diagnosis_.+",
    "host": "(node_|container_).+",
    "processes": "namedprocess_.+",
    "mysql": "mysql_.+",
}
"""Names of metrics by sender; the stack of this test has no ProxySQL."""
MISSING: Final = ("proxysql",)
each_board = pytest.mark.parametrize("board", BOARDS, ids=[one.name for one in BOARDS])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with start_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    """A page of an anonymous viewer."""
    return new_page(browser)


@pytest.fixture(scope="module")
def administrator(browser: Browser, stack: Stack) -> Page:
    """A page of Grafana's administrator, who has a second data source."""
    add_source(stack, OTHER_SOURCE, stack.url("prometheus"))
    page = new_page(browser)
    login = {"user": "admin", "password": stack.admin().password}
    assert page.request.post(f"{stack.url('grafana')}/login", data=login).ok
    return page


@pytest.fixture(scope="module")
def period(stack: Stack, called: list[Sample]) -> dict[str, str]:
    """The time of the load, as it is in a dashboard's URL."""
    start = min(sample.start_seconds for sample in called)
    time.sleep(RECORDED_SECONDS)
    return {
        "from": str(int((start - EARLIER_SECONDS) * 1000)),
        "to": str(int(time.time() * 1000)),
    }


def address(stack: Stack, board: Board, **query: str) -> str:
    """Return the URL of a dashboard."""
    search = "&".join(f"{name}={value}" for name, value in query.items())
    return f"{stack.url('grafana')}/d/{UID_PREFIX}{board.name}?{search}"


def titles(board: Board) -> set[str]:
    return {panel.title for row in board.rows for panel in row.panels}


def heatmaps(board: Board) -> set[str]:
    """Return the titles of heatmaps: Grafana has its own text for one without data."""
    return {panel.title for panel in board.panels() if panel.kind == "heatmap"}


def without_source(board: Board, *missing: str) -> set[str]:
    """Return the titles of the panels whose rows need sources that are missing."""
    rows = [row for row in board.rows if row.source in missing]
    return {panel.title for row in rows for panel in row.panels}


def add_source(stack: Stack, uid: str, url: str) -> None:
    """Add a data source to Grafana."""
    answer = requests.post(
        f"{stack.url('grafana')}/api/datasources",
        json={
            "name": uid,
            "uid": uid,
            "url": url,
            "type": "prometheus",
            "access": "proxy",
        },
        auth=("admin", stack.admin().password),
        timeout=30,
    )
    assert answer.ok, answer.text


def keep_picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.png").write_bytes(take_picture(page))


def assert_right(shown: list[ShownPanel], board: Board) -> None:
    """Assert that all panels exist, and show what they should."""
    assert {panel.title for panel in shown} == titles(board)
    faults = find_faults(shown, board)
    assert not faults, "\n".join(faults)
    assert empty_titles(shown, board) <= without_source(board, *MISSING)


@each_board
def test_panels_show_what_they_should(
    page: Page, stack: Stack, period: dict[str, str], board: Board
) -> None:
    open_dashboard(page, address(stack, board, **period, **KEPT))
    keep_picture(page, board.name)
    links = [urlsplit(link) for link in read_links(page)]

    for width in WIDTHS:
        set_width(page, width)
        assert_right(read_panels(page), board)
    assert [panel.title for panel in read_panels(page) if panel.title_clipped] == []
    assert_links_keep(links, board, {**period, **KEPT})


def assert_links_keep(
    links: list[SplitResult], board: Board, asked: dict[str, str]
) -> None:
    """Assert that the links of panels lead to dashboards, with time and variables."""
    names = {"from", "to", *(f"var-{name}" for name in board.variables)}
    kept = {name: milliseconds(asked[name]) for name in asked.keys() & names}
    linked = [
        {name: milliseconds(values[0]) for name, values in parse_qs(link.query).items()}
        for link in links
    ]
    assert {link.path for link in links} <= {f"/d/{UID_PREFIX}{b.name}" for b in BOARDS}
    assert [link for link in linked if not kept.items() <= link.items()] == []
    explained = [panel.explained_by for row in board.rows for panel in row.panels]
    assert bool(links) == any(explained)


def milliseconds(text: str) -> str:
    """Return a time of a link as Unix time, and any other text as it is."""
    with suppress(ValueError):
        return f"{datetime.fromisoformat(text).timestamp() * 1000:.0f}"
    return text


@each_board
def test_light_panels_show_what_they_should(
    page: Page, stack: Stack, period: dict[str, str], board: Board
) -> None:
    open_dashboard(page, address(stack, board, **period, theme="light"))
    keep_picture(page, f"{board.name}-light")

    assert page.locator("body.theme-light").count() == 1
    for width in WIDTHS:
        set_width(page, width)
        assert_right(read_panels(page), board)


def test_link_opens_the_panel_that_explains(
    page: Page, stack: Stack, period: dict[str, str]
) -> None:
    tokens = next(board for board in BOARDS if board.name == "tokens")
    open_dashboard(page, address(stack, tokens, **period))

    link = next(one for one in read_links(page) if "viewPanel" in one)
    open_dashboard(page, stack.url("grafana") + link)

    shown = read_panels(page)
    assert len({panel.title for panel in shown}) == 1
    assert not any(map(is_empty, shown))


@pytest.mark.parametrize(
    ("shown", "series", "step"),
    [("now-1h", FINE, "30s"), ("now-7d", COARSE, "300s")],
)
def test_panels_over_many_days_ask_for_means(
    page: Page, stack: Stack, shown: str, series: str, step: str
) -> None:
    tokens = next(board for board in BOARDS if board.name == "tokens")
    queries = queries_of(page, address(stack, tokens, **{"from": shown, "to": "now"}))
    chosen = [one for one in queries if "[$__interval]" in one.get("expr", "")]
    assert chosen
    assert all(f":{series}{{" in one["expr"] for one in chosen)
    assert {one["interval"] for one in chosen} == {step}


def queries_of(page: Page, url: str) -> list[dict[str, str]]:
    """Open a dashboard; return what it asks of data sources."""
    found: list[dict[str, str]] = []

    def keep(request: Request) -> None:
        if "/api/ds/query" in request.url:
            found.extend(request.post_data_json["queries"])

    page.on("request", keep)
    open_dashboard(page, url)
    page.remove_listener("request", keep)
    return found


def test_grafana_opens_with_home(page: Page, stack: Stack) -> None:
    page.goto(stack.url("grafana"))

    page.get_by_text("Error budget left", exact=True).wait_for()


@pytest.mark.skipif(not is_installed("tempo"), reason="no `tempo` on the PATH")
def test_exemplar_opens_its_trace(page: Page, stack: Stack) -> None:
    """As an anonymous viewer clicks it."""
    tokens = next(board for board in BOARDS if board.name == "tokens")
    assert send_until_exemplar(stack)
    open_dashboard(page, address(stack, tokens, **{"from": "now-15m", "to": "now"}))

    page.get_by_test_id("data-testid Exemplar marker").last.click()
    link = page.get_by_role("link", name="Query with Tempo").get_attribute("href")
    set_width(page, WIDTHS[0])
    page.goto(f"{stack.url('grafana')}{link}")

    page.get_by_text("Flask.dispatch_request").first.wait_for()
    keep_picture(page, "trace")


@each_board
def test_imported_dashboard_uses_the_chosen_data_source(
    administrator: Page, stack: Stack, period: dict[str, str], board: Board
) -> None:
    """Imports as an administrator does, on Grafana's Import page."""
    file = GENERATED.with_name("import") / f"{board.name}.json"
    uid = f"imported-{board.name}"

    import_dashboard(administrator, stack, file, uid)
    with administrator.expect_request("**/api/ds/query**") as asked:
        open_dashboard(
            administrator,
            f"{stack.url('grafana')}/d/{uid}?from={period['from']}&to={period['to']}",
        )

    queries = asked.value.post_data_json["queries"]
    assert {query["datasource"]["uid"] for query in queries} == {OTHER_SOURCE}
    assert_right(read_panels(administrator), board)


def import_dashboard(page: Page, stack: Stack, file: Path, uid: str) -> None:
    """Import a file with another uid, for the data source OTHER_SOURCE."""
    page.goto(f"{stack.url('grafana')}/dashboard/import")
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Change uid").click()
    page.locator("input[name=uid]").fill(uid)
    page.get_by_test_id("data-testid Select a data source").click()
    sources = page.get_by_test_id("data-testid Data source list dropdown")
    sources.get_by_role("button", name=OTHER_SOURCE).click()
    page.get_by_test_id("data-testid-import-dashboard-submit").click()
    page.wait_for_url(f"**/d/{uid}/**")


def needs(board: Board, metrics: str) -> set[str]:
    """Return the titles of the panels that ask for metrics."""
    content = json.loads((GENERATED / f"{board.name}.json").read_text(encoding="utf-8"))
    rows = content["panels"]
    panels = [*rows, *(inner for row in rows for inner in row.get("panels", []))]
    return {
        panel["title"]
        for panel in panels
        if re.search(metrics, json.dumps(panel.get("targets", [])))
    }


@pytest.fixture(scope="module", params=METRICS)
def left_out(
    request: pytest.FixtureRequest,
    stack: Stack,
    period: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """A sender without which a Prometheus runs; Grafana has it as a data source."""
    sender: str = request.param
    folder: Path = tmp_path_factory.mktemp(sender)
    with prometheus_without(stack, METRICS[sender], sender, folder) as url:
        add_source(stack, f"without-{sender}", url)
        yield sender


@each_board
def test_dashboard_without_a_sender_says_so(
    page: Page, stack: Stack, period: dict[str, str], left_out: str, board: Board
) -> None:
    needed = needs(board, METRICS[left_out])
    if not needed:
        pytest.skip("The dashboard needs nothing of it")
    source = {"var-datasource": f"without-{left_out}"}
    open_dashboard(page, address(stack, board, **period, **source))
    keep_picture(page, f"{board.name}-without-{left_out}")

    shown = read_panels(page)
    in_row = without_source(board, left_out, *MISSING)
    unexplained = {
        one.title
        for one in shown
        if one.title in needed - in_row - heatmaps(board)
        and is_empty(one)
        and left_out not in one.text
    }
    rows = [row for row in read_rows(page) if row.endswith(NOT_INSTALLED)]

    assert {one.title for one in shown if one.failed} == set()
    assert empty_titles(shown, board) <= needed | in_row
    assert unexplained == set()
    assert len(rows) == sum(row.source in {left_out, *MISSING} for row in board.rows)
