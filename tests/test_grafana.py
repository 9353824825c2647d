"""All dashboards in Grafana, in a browser; screenshots go to out/grafana."""

import json
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect, sync_playwright
from traffic import SentCalls

from keylag.paths import CHECKOUT
from keylag.services import is_installed
from keylag.stack import Stack
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.check import GENERATED
from keylag_dashboards.config import IMPORT_INPUT, UID_PREFIX
from keylag_dashboards.model import Board

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not is_installed("grafana"), reason="no `grafana` on the PATH"),
    pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on the PATH"),
]
PICTURES = CHECKOUT / "out" / "grafana"
TIMEOUT_MS = 60_000
"""Timeout of a page in milliseconds."""
HEADER = "data-testid Panel header "
PANEL = f"section[data-testid^='{HEADER}']"
FAILED = "[data-testid='data-testid Panel status error']"
LOADING = "[aria-label='Panel loading bar']"
TALL = "document.documentElement.scrollHeight"
EMPTY = ("No data", "Data is missing", "Cannot visualize")
"""Grafana's texts for panels without data."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page in Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.set_default_timeout(TIMEOUT_MS)
        yield page
        browser.close()


def open_dashboard(page: Page, stack: Stack, uid: str, search: str) -> None:
    """Open a dashboard at its full height, and wait for its data."""
    page.set_viewport_size({"width": 1600, "height": 900})
    page.goto(f"{stack.url('grafana')}/d/{uid}?{search}")
    page.locator(PANEL).first.wait_for()
    height = 0
    while height != (found := page.evaluate(TALL)):
        height = found
        page.set_viewport_size({"width": 1600, "height": height})
        page.wait_for_load_state("networkidle")
    expect(page.locator(LOADING)).to_have_count(0, timeout=TIMEOUT_MS)


def contents(page: Page) -> dict[str, str]:
    """Return the text of each panel by title; the last one of repeated panels."""
    return {
        (panel.get_attribute("data-testid") or "").removeprefix(HEADER): (
            panel.inner_text()
        )
        for panel in page.locator(PANEL).all()
    }


def chosen(page: Page) -> dict[str, list[str]]:
    """Return time range and variables in a page's URL."""
    asked = parse_qs(urlsplit(page.url).query)
    return {k: v for k, v in asked.items() if k in {"from", "to", "var-method"}}


def assert_shown(page: Page, board: Board) -> None:
    """Assert that all panels exist, none failed, and only allowed ones are empty."""
    shown = contents(page)
    panels = [panel for row in board.rows for panel in row.panels]
    may_be_empty = {p.title for p in panels if all(map(p.may_be_empty, p.queries))}

    assert set(shown) == {panel.title for panel in panels}
    assert page.locator(FAILED).count() == 0
    assert {t for t, x in shown.items() if any(map(x.count, EMPTY))} <= may_be_empty


def send(stack: Stack, path: str, **body: Any) -> None:
    """Send a request to Grafana's API as administrator."""
    address = f"{stack.url('grafana')}/api/{path}"
    admin = ("admin", stack.admin().password)
    answer = requests.post(address, json=body, auth=admin, timeout=30)
    assert answer.ok, answer.text


@pytest.fixture(scope="module")
def other_source(stack: Stack) -> str:
    """The uid of an additional data source."""
    prometheus = {"type": "prometheus", "access": "proxy"}
    url = stack.url("prometheus")
    send(stack, "datasources", name="Mine", uid="mine", url=url, **prometheus)
    return "mine"


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_panels_show_data_without_errors(
    page: Page, stack: Stack, sent: SentCalls, board: Board
) -> None:
    open_dashboard(page, stack, UID_PREFIX + board.name, "from=now-5m&to=now")
    page.screenshot(path=PICTURES / f"{board.name}.png")

    assert_shown(page, board)


def test_links_keep_time_and_variables(
    page: Page, stack: Stack, sent: SentCalls
) -> None:
    asked = {"from": ["now-7m"], "to": ["now"], "var-method": ["GET"]}
    open_dashboard(
        page, stack, f"{UID_PREFIX}tokens", "from=now-7m&to=now&var-method=GET"
    )

    page.get_by_role("link", name="Keylag / SQL").click()
    page.wait_for_url(f"**/{UID_PREFIX}sql/**")

    assert chosen(page) == asked


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_imported_dashboard_uses_the_chosen_data_source(
    page: Page, stack: Stack, sent: SentCalls, other_source: str, board: Board
) -> None:
    """Imports as Grafana's Import page does."""
    file = GENERATED.with_name("import") / f"{board.name}.json"
    dashboard = {**json.loads(file.read_text(encoding="utf-8")), "uid": board.name}
    chosen = {"name": IMPORT_INPUT, "type": "datasource", "pluginId": "prometheus"}
    inputs = [{**chosen, "value": other_source}]

    send(stack, "dashboards/import", dashboard=dashboard, inputs=inputs)
    with page.expect_request("**/api/ds/query**") as asked:
        open_dashboard(page, stack, board.name, "from=now-5m&to=now")

    queries = asked.value.post_data_json["queries"]
    assert {query["datasource"]["uid"] for query in queries} == {other_source}
    assert_shown(page, board)
