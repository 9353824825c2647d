"""Takes pictures of all dashboards under a load with a fault in it.

    python -m keylag_dev.pictures [--minutes 20]

It starts a stack, sends a load, stops memcached after a quarter of the time, and starts
it again after three quarters.  Then it writes docs/dashboards.md and its pictures.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Final

import click
from PIL import Image
from playwright.sync_api import Page
from rich.console import Console

from keylag import jmeter, load_target
from keylag.command_errors import handle_errors
from keylag.demo import SAMPLE_CLOUD
from keylag.load_plans import find_plan
from keylag.load_runner import build_load, jmeter_home
from keylag.paths import CHECKOUT
from keylag.services import is_installed, memcached
from keylag.stack import Stack, StackOptions
from keylag.stack_shutdown import stop_services
from keylag.state import state_folder
from keylag.tools import Tools, find_program
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import RECORDING_SECONDS, UID_PREFIX
from keylag_dev.grafana_page import (
    new_page,
    open_dashboard,
    set_width,
    start_browser,
    take_picture,
)
from keylag_dev.pictures_page import (
    DEAD_RETRY_SECONDS,
    IMAGES,
    PAGE,
    Fault,
    write_page,
)

STACK: Final = "pictures"
"""Name of the stack's folder in the state folder."""
PROGRAMS: Final = ("grafana", "chromium")
ENVIRONMENT: Final = {
    "OTEL_RESOURCE_ATTRIBUTES": "keylag.run=memcache-pool",
    "OS_CACHE__MEMCACHE_DEAD_RETRY": str(DEAD_RETRY_SECONDS),
}
"""Of Keystone: a name for *Experiment*, and how long it avoids a dead memcached."""
RATES: Final[Mapping[str, Mapping[str, str]]] = {
    "token-mixed": {"threads": "4", "rate_per_second": "4"},
    "service-call": {"threads": "2", "rate_per_second": "3", "subjects": "5"},
}
"""Properties of the load plans that are sent side by side."""
ENDLESS: Final = {
    "loops": "-1",
    "ramp_seconds": "0",
    "response_timeout_ms": "300000",
}
"""Properties of all loads, which a busy machine does not end."""
SPARE_SECONDS: Final = 600
"""A load that nobody stops ends this long after its time."""
POLL_SECONDS: Final = 1.0
RECORDED_SECONDS: Final = RECORDING_SECONDS + 5
"""Until the recording rules have evaluated the last calls."""
WIDTH: Final = 1600
THEMES: Final[Mapping[str, Sequence[str]]] = {
    "dark": tuple(board.name for board in BOARDS),
    "light": ("tokens",),
}
"""The dashboards that are shown in a theme."""


@dataclass(frozen=True)
class Schedule:
    """When the fault begins and ends, in seconds after the start of the load."""

    fault: float
    cure: float
    end: float

    @classmethod
    def of(cls, minutes: float) -> "Schedule":
        """Return the schedule of a load: the fault takes half of it."""
        seconds = minutes * 60
        return cls(seconds / 4, seconds * 3 / 4, seconds)


def stack_options() -> StackOptions:
    """Return the options of the stack, with ProxySQL if it is installed."""
    proxysql = ("proxysql",) if is_installed("proxysql") else ()
    return StackOptions(
        cache="memcache_pool",
        environment=ENVIRONMENT,
        extras=(*proxysql, "service"),
    )


@dataclass(frozen=True)
class Period:
    """The time that a picture shows; Unix times."""

    begun: float
    ended: float


@contextmanager
def load_on(stack: Stack, seconds: float) -> Iterator[list[Future[jmeter.LoadResult]]]:
    """Send all load plans until the `with` body ends."""
    stop = Event()
    target = load_target.from_stack(stack)
    limit = {"duration_seconds": str(round(seconds + SPARE_SECONDS))}
    with (
        TemporaryDirectory(prefix="keylag-pictures-") as out,
        ThreadPoolExecutor(len(RATES)) as pool,
    ):
        try:
            yield [
                pool.submit(
                    jmeter.run,
                    build_load(find_plan(name), target, {**ENDLESS, **rate, **limit}),
                    home=jmeter_home(),
                    out=Path(out) / name,
                    should_stop=lambda _: stop.is_set(),
                )
                for name, rate in RATES.items()
            ]
        finally:
            stop.set()


def wait_until(moment: float, loads: Sequence[Future[jmeter.LoadResult]]) -> None:
    """Wait until a Unix time; raises the error of a load that has failed."""
    while (left := moment - time.time()) > 0:
        for load in loads:
            if load.done():
                load.result()
        time.sleep(min(left, POLL_SECONDS))


def make_fault(stack: Stack, schedule: Schedule, console: Console) -> Fault:
    """Send the load, and stop memcached meanwhile; return when it happened."""
    with load_on(stack, schedule.end) as loads:
        start = time.time()
        say(console, f"Sending {', '.join(RATES)} for {schedule.end:.0f} s")
        wait_until(start + schedule.fault, loads)
        say(console, "Stopping memcached")
        fault = time.time()
        stop_services(stack.folder, [memcached.SERVICE])
        wait_until(start + schedule.cure, loads)
        say(console, "Starting memcached")
        stack.restart(memcached.SERVICE.name)
        cure = time.time()
        wait_until(start + schedule.end, loads)
        end = time.time()
        wait_until(end + RECORDED_SECONDS, loads)
    return Fault(start, fault, cure, end)


def take_pictures(stack: Stack, fault: Fault, out: Path, console: Console) -> None:
    """Write a picture of each dashboard to a folder, in each of its themes."""
    period = Period(fault.start, fault.end)
    with start_browser() as browser:
        page = new_page(browser)
        for theme, names in THEMES.items():
            suffix = "" if theme == "dark" else f"-{theme}"
            for name in names:
                say(console, f"Taking a picture of {name} ({theme})")
                picture = draw_board(page, stack.url("grafana"), name, period, theme)
                (out / f"{name}{suffix}.png").write_bytes(picture)


def draw_board(
    page: Page, grafana_url: str, name: str, period: Period, theme: str = "dark"
) -> bytes:
    """Return a picture of all rows of a dashboard, as a PNG file."""
    chosen = f"from={period.begun * 1000:.0f}&to={period.ended * 1000:.0f}"
    url = f"{grafana_url}/d/{UID_PREFIX}{name}?{chosen}&timezone=utc&theme={theme}"
    open_dashboard(page, f"{url}&kiosk")
    set_width(page, WIDTH)
    return with_palette(take_picture(page))


def with_palette(picture: bytes) -> bytes:
    """Return a PNG file with 256 colours, which is about a third as large."""
    colors = Image.open(BytesIO(picture)).convert("RGB")
    # This method keeps the colours of small things, such as those of legends.
    method, dither = Image.Quantize.FASTOCTREE, Image.Dither.NONE
    small = BytesIO()
    colors.quantize(256, method, dither=dither).save(small, "PNG", optimize=True)
    return small.getvalue()


def say(console: Console, text: str) -> None:
    """Print a line of progress with the time."""
    console.print(f"{time.strftime('%H:%M:%S')} {text}", highlight=False)


def require_programs() -> None:
    """Raise ToolError if a program is missing that pictures need."""
    for program in PROGRAMS:
        find_program(program, "Put Grafana 12 and Chromium on the PATH.")


def make_pictures(minutes: float, console: Console) -> None:
    """Make page and pictures; they replace the old ones when all are there."""
    require_programs()
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=IMAGES.parent) as made:
        with Stack(
            state_folder() / STACK,
            Tools.load(),
            stack_options(),
            initial_data=SAMPLE_CLOUD,
            console=console,
        ) as stack:
            fault = make_fault(stack, Schedule.of(minutes), console)
            take_pictures(stack, fault, Path(made), console)
        for picture in Path(made).glob("*.png"):
            picture.replace(IMAGES / picture.name)
        write_page(fault)
    say(console, f"Wrote {PAGE.relative_to(CHECKOUT)} and its pictures")


@click.command(help=__doc__)
@click.option(
    "--minutes",
    type=click.FloatRange(min=1),
    default=20,
    show_default=True,
    help="Duration of the load; the fault takes half of it.",
)
def main(minutes: float) -> None:
    """Take the pictures."""
    with handle_errors():
        make_pictures(minutes, Console(stderr=True))


if __name__ == "__main__":
    main()
