"""A dashboard in a browser, and what its panels show."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
SCRIPT = Path(__file__).with_suffix(".js")
TIMEOUT_MS = 180_000
"""Timeout of a page in milliseconds."""
SETTLING_MS = 500
"""A page whose end stays for this time has all its panels."""
HEIGHT = 8000
"""Grafana renders only visible panels, so the window is as high as a dashboard."""
MARGIN = 16
"""Pixels below the last panel of a picture."""
NARROW = 1280
"""A window that had this width at first has no open menu."""
PANEL = "section[data-testid^='data-testid Panel header ']"
PANEL_LINK = f"{PANEL} [data-testid='title-items-container'] a"
CLOSED_ROW = "[aria-label='Expand row']"
ROW_TITLE = "[data-testid^='data-testid dashboard-row-title-']"
TIME = re.compile(r"\d\d:\d\d(:\d\d)?|\d\d/\d\d|")


@dataclass(frozen=True)
class Box:
    """The place of a panel in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Return whether two boxes have a pixel in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class Legend:
    """One line of a legend."""

    name: str
    color: str
    values: list[str]


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and the part of it that fits in."""

    text: str
    visible: str


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    heading: str
    clipped: bool
    cells: list[Cell]


@dataclass(frozen=True)
class ShownPanel:
    """What one panel shows."""

    title: str
    title_clipped: bool
    box: Box
    text: str
    failed: bool
    ticks: list[str]
    """Texts at the value axis."""
    legends: list[Legend]
    columns: list[Column]
    hidden_columns: bool
    """Whether columns are to the right of the visible ones."""

    @classmethod
    def read(cls, found: dict[str, Any]) -> "ShownPanel":
        """Return a panel as the script found it."""
        columns = [
            Column(
                one["heading"], one["clipped"], [Cell(**cell) for cell in one["cells"]]
            )
            for one in found["columns"]
        ]
        legends = [Legend(**one) for one in found["legends"]]
        ticks = [tick for tick in found["ticks"] if not TIME.fullmatch(tick)]
        shown = {"columns": columns, "legends": legends, "ticks": ticks}
        return cls(**{**found, **shown, "box": Box(**found["box"])})


@contextmanager
def start_browser() -> Iterator[Browser]:
    """Start Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def new_page(browser: Browser) -> Page:
    """Return a new page that keeps what its dashboards draw."""
    page = browser.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.add_init_script(path=SCRIPT)
    return page


def wait_for_panels(page: Page) -> None:
    """Wait until the panels have data and the last one is in its place."""
    end = 0
    while end != (found := page.evaluate("endOfPanels()")):
        end = found
        page.wait_for_timeout(SETTLING_MS)
        page.wait_for_function("allPanelsShown()")


def open_dashboard(page: Page, url: str) -> None:
    """Open a dashboard with all its rows, without menu, and wait for its data."""
    page.set_viewport_size({"width": NARROW, "height": HEIGHT})
    page.goto(url)
    page.locator(PANEL).first.wait_for()
    wait_for_panels(page)
    for closed in page.locator(CLOSED_ROW).all()[::-1]:
        closed.click()
    wait_for_panels(page)


def set_width(page: Page, width: int) -> None:
    """Change the width of the window."""
    page.set_viewport_size({"width": width, "height": HEIGHT})
    wait_for_panels(page)


def take_picture(page: Page) -> bytes:
    """Return a picture of a page down to its last panel, as a PNG file."""
    width = page.evaluate("innerWidth")
    height = round(page.evaluate("endOfPanels()")) + MARGIN
    page.set_viewport_size({"width": width, "height": height})
    page.mouse.move(0, 0)
    page.wait_for_function("allPanelsShown()")
    return page.screenshot(animations="disabled")


def read_panels(page: Page) -> list[ShownPanel]:
    """Return what all panels show."""
    return [ShownPanel.read(found) for found in page.evaluate("readPanels()")]


def read_rows(page: Page) -> list[str]:
    """Return the titles of all rows."""
    return [row.inner_text() for row in page.locator(ROW_TITLE).all()]


def read_links(page: Page) -> list[str]:
    """Return where panels link to: all single links, and those of the first menu."""
    found = [link.get_attribute("href") for link in page.locator(PANEL_LINK).all()]
    button = page.get_by_role("button", name="Panel links").first
    if button.count():
        button.click()
        menu = page.get_by_role("menu").locator("a")
        menu.first.wait_for()
        found += [link.get_attribute("href") for link in menu.all()]
        page.keyboard.press("Escape")
    return [link for link in found if link]
