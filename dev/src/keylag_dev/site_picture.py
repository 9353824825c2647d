"""Takes a picture of a dashboard at a site of a laboratory, whose metrics it has.

    python -m keylag_dev.site_picture SITE BOARD BEGUN ENDED PICTURE

SITE is the folder of the site's stack, BEGUN and ENDED are Unix times.  It runs on the
site's router, so 127.0.0.1 is that of the site.  Grafana runs only meanwhile.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

import click
from rich.console import Console

from keylag.command_errors import handle_errors
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import command_in, run
from keylag.lab.network import Host
from keylag.launcher import Launcher
from keylag.paths import CHECKOUT
from keylag.ports import free_port
from keylag.services import grafana
from keylag.services.base import HOST, Secrets, ServiceContext, StackOptions
from keylag.stack_info import StackInfo
from keylag.stack_shutdown import stop_services
from keylag.tools import Tools
from keylag_dev.grafana_page import new_page, start_browser
from keylag_dev.pictures import (
    RECORDED_SECONDS,
    Period,
    draw_board,
    require_programs,
)

IMAGES: Final = CHECKOUT / "docs" / "images" / "labs"


@dataclass(frozen=True)
class SitePicture:
    """A picture of a dashboard, for the page of a laboratory."""

    board: str
    """Name of the dashboard."""
    file: Path
    heading: str
    reading: str
    """What the picture shows."""

    def take(self, lab: Path, router: Host, begun: float) -> None:
        """Take it of the time from a Unix time until now, on the router of a site.

        It replaces that of an earlier run, also if it cannot be taken.  Raises LabError
        or ToolError.
        """
        self.file.unlink(missing_ok=True)
        require_programs()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        period = (str(begun), str(time.time()))
        time.sleep(RECORDED_SECONDS)
        site = site_folder(lab, router.name)
        arguments = (str(site), self.board, *period, str(self.file))
        command = [sys.executable, "-m", __name__, *arguments]
        run(*command_in(router.namespace, command))

    def section(self, page: Path) -> str:
        """Return a section of a page with the picture; empty if there is none."""
        if not self.file.exists():
            return ""
        link = self.file.relative_to(page.parent.parent)
        picture = f"![{self.heading}](../{link})"
        return f"\n## {self.heading}\n\n{self.reading}\n\n{picture}\n"


@contextmanager
def grafana_of(site: Path) -> Iterator[str]:
    """Start a Grafana on the Prometheus of a site, and yield its address.

    Raises StackError or ToolError.
    """
    stack = StackInfo(site)
    context = ServiceContext(
        folder=stack.folder / "picture",
        tools=Tools.load(),
        options=StackOptions(),
        ports={**stack.ports, "grafana": free_port(stack.ports.values())},
        secrets=Secrets(admin=token_hex()),
    )
    context.folder.mkdir(exist_ok=True, mode=0o700)
    try:
        Launcher(context, Console(quiet=True)).start([grafana.SERVICE])
        yield f"http://{HOST}:{context.ports['grafana']}"
    finally:
        stop_services(context.folder, [grafana.SERVICE])


@click.command(help=__doc__)
@click.argument("site", type=click.Path(path_type=Path))
@click.argument("board")
@click.argument("begun", type=float)
@click.argument("ended", type=float)
@click.argument("picture", type=click.Path(path_type=Path))
def main(site: Path, board: str, begun: float, ended: float, picture: Path) -> None:
    """Take the picture."""
    with handle_errors(), grafana_of(site) as url, start_browser() as browser:
        page = new_page(browser)
        picture.write_bytes(draw_board(page, url, board, Period(begun, ended)))


if __name__ == "__main__":
    main()
