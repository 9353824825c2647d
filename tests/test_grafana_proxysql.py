"""The row *ProxySQL* of a stack that has one."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from panel_checks import empty_titles, find_faults
from traced_calls import log_in

from keylag.demo import SAMPLE_CLOUD
from keylag.paths import CHECKOUT
from keylag.services import is_installed
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag_dashboards.boards.sql import BOARD
from keylag_dashboards.config import RECORDING_SECONDS, UID_PREFIX
from keylag_dev.grafana_page import (
    CHROMIUM,
    new_page,
    open_dashboard,
    read_panels,
    read_rows,
    set_width,
    start_browser,
    take_picture,
)

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(
        not all(map(is_installed, ("grafana", "proxysql"))),
        reason="no `grafana` and `proxysql` on the PATH",
    ),
    pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on the PATH"),
]
LOAD_SECONDS: Final = 4 * RECORDING_SECONDS
"""After this time the recording rules have seen the calls."""
PICTURE: Final = CHECKOUT / "out" / "grafana" / "sql-with-proxysql.png"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with ProxySQL and its query cache, under load."""
    folder: Path = tmp_path_factory.mktemp("proxied")
    cached = {"FROM project": 5000}
    options = StackOptions(extras=("proxysql",), query_cache=cached)
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        end = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < end:
            log_in(started)
        yield started


def test_proxysql_row_shows_what_it_should(proxied: Stack) -> None:
    url = f"{proxied.url('grafana')}/d/{UID_PREFIX}{BOARD.name}?from=now-5m&to=now"
    row = next(row for row in BOARD.rows if row.source == "proxysql")
    with start_browser() as browser:
        page = new_page(browser)
        open_dashboard(page, url)
        set_width(page, 1280)
        shown, rows = read_panels(page), read_rows(page)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_bytes(take_picture(page))

    faults = find_faults(shown, BOARD)
    titles = {panel.title for panel in row.panels}
    assert "ProxySQL: reporting" in rows
    assert not faults, "\n".join(faults)
    assert empty_titles(shown, BOARD) & titles == set()
