"""`keylag fault`: plants causes of slow token calls, for drills and tests."""

import json
import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from keylag.commands.common import output_option, state_option
from keylag.errors import WrongUsageError
from keylag.faults.drill import Drill
from keylag.faults.impact import Impact
from keylag.faults.journal import Journal, PlantedFault
from keylag.faults.model import Fault, FaultError, Strength
from keylag.faults.planting import find_fault, helpers, take_back
from keylag.faults.probe import Latency
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.processes import find_processes
from keylag.stack_info import StackInfo

NOTHING: Final = "No fault is planted."
UNIT_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


class DurationParam(click.ParamType[float]):
    """A duration such as 60s, 5m or 1h, in seconds."""

    name = "duration"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the seconds."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if not found:
            self.fail(f"{value} is no duration. Use one like 60s or 5m.", param, ctx)
        return float(found[1]) * UNIT_SECONDS[found[2]]


@click.group("fault")
def command() -> None:
    """Plant causes of slow token calls in the stack of `keylag up`.

    Each fault uses a real mechanism: a relay that delays, a server that is suspended,
    an index that is missing. It only touches a stack that Keylag has started, and takes
    everything back, also after a crash.

    \b
    Examples:
      keylag fault list
      keylag fault start C4 --strength 10
      keylag fault stop
    """  # noqa: D301 - click reads a backspace


@command.command("list")
@output_option()
def list_faults(form: str) -> None:
    """List the faults, and what each does to the stack."""
    if form == "json":
        click.echo(json.dumps([_as_json(one) for one in FAULTS.values()], indent=2))
        return
    table = Table(box=None)
    for column in ("id", "name", "strength", "what it does"):
        table.add_column(column, no_wrap=column in {"id", "name"})
    for fault in FAULTS.values():
        strength = _strength_text(fault.strength, fault.strength.default) or "·"
        table.add_row(fault.key, fault.name, strength, fault.summary)
    Console().print(table)


@command.command("start")
@click.argument("key", metavar="ID[:VARIANT]")
@click.option(
    "--strength",
    type=float,
    help="How strong it is, in the unit that `keylag fault list` shows.",
)
@click.option(
    "--for",
    "seconds",
    type=DurationParam(),
    metavar="DURATION",
    help="Take it back after 60s, 5m or 1h; until then the command waits.",
)
@click.option(
    "--check/--no-check",
    default=True,
    help="Measure calls before and after, and fail if they did not become slower.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Take the fault back if calls did not become slower, as --for does.",
)
@output_option()
@state_option
def start(  # noqa: PLR0913 - one for each option
    key: str,
    strength: float | None,
    seconds: float | None,
    form: str,
    folder: Path,
    *,
    check: bool,
    strict: bool,
) -> None:
    """Plant a fault, and check that token calls become slower.

    ID is that of `keylag fault list`, or the name. Several faults may be planted at
    once unless they change the same part of the stack. Ctrl-C takes back what was
    begun.

    \b
    Examples:
      keylag fault start C2
      keylag fault start D1 --strength 20 --for 5m
    """  # noqa: D301 - click reads a backspace
    if strict and not check:
        message = "--strict takes a fault back by its check: leave out --no-check."
        raise WrongUsageError(message)
    fault = find_fault(key)
    if strength is not None:
        fault.strength.check(strength)
    StackInfo(folder).require_keystone("name its folder with --state")
    site = Site(folder, Console(stderr=True))
    value = fault.strength.default if strength is None else strength
    drill = Drill(site, fault, value)
    try:
        impact = drill.start_and_check() if check else None
        if impact is None:
            drill.start()
        if form == "json":
            click.echo(json.dumps(_result(fault, value, impact), indent=2))
        elif impact:
            _print_impact(impact)
        if impact and not impact.slower:
            _reject(site, fault, take_back_too=strict or seconds is not None)
        _say_planted(fault, value)
        planted = Journal(folder).find(fault.key)
        if seconds is not None:
            time.sleep(seconds)
    except KeyboardInterrupt:
        take_back(site, fault.key)
        raise
    if seconds is not None:
        _end(folder, fault, planted)


@command.command("stop")
@click.argument("key", metavar="[ID[:VARIANT]]", required=False)
@state_option
def stop(key: str | None, folder: Path) -> None:
    """Take back a fault, or all of them.

    The stack's journal has each change, so this works after a crash too.
    """
    site = Site(folder, Console(stderr=True))
    chosen = find_fault(key).key if key else None
    stopped = take_back(site, chosen)
    if not stopped:
        click.echo(f"{chosen} is not planted." if chosen else NOTHING)
        return
    _say_taken_back(stopped)


@command.command("status")
@output_option()
@state_option
def status(form: str, folder: Path) -> None:
    """Show the planted faults, and their processes."""
    folder = folder.resolve()
    journal = Journal(folder)
    running = {one.service: one.process.pid for one in find_processes(stack=folder)}
    rows: list[dict[str, Any]] = [
        {
            "id": one.key,
            "name": FAULTS[one.key].name,
            "strength": one.strength,
            "since": datetime.fromtimestamp(one.since, UTC).isoformat("T", "seconds"),
            "complete": one.complete,
            "processes": {
                helper.program: running.get(helper.name) for helper in helpers(one)
            },
        }
        for one in journal.planted
    ]
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(NOTHING)
    for row in rows:
        text = _strength_text(FAULTS[row["id"]].strength, row["strength"])
        parts = [f"{row['id']} {row['name']}", text, f"since {row['since']}"]
        line = ", ".join(filter(None, parts))
        ended = [name for name, pid in row["processes"].items() if pid is None]
        problems = [f"its {name} has ended" for name in ended]
        problems += [] if row["complete"] else ["it was not planted completely"]
        advice = "; `keylag fault stop` takes it back" if problems else ""
        click.echo("; ".join([line, *problems]) + advice)


def _strength_text(strength: Strength, value: float) -> str:
    """Return a strength with its unit; empty if the fault has none."""
    return f"{value:g} {strength.unit}" if strength.unit else ""


def _as_json(fault: Fault) -> dict[str, Any]:
    return {
        "id": fault.key,
        "name": fault.name,
        "summary": fault.summary,
        "mechanism": fault.mechanism,
        "slows": fault.slows,
        "strength": asdict(fault.strength),
        "uses": sorted(fault.uses),
    }


def _result(fault: Fault, strength: float, impact: Impact | None) -> dict[str, Any]:
    measured = (
        {
            "before": {kind: _numbers(one) for kind, one in impact.before.items()},
            "after": {kind: _numbers(one) for kind, one in impact.after.items()},
            "slower": impact.slower,
        }
        if impact
        else None
    )
    return {"id": fault.key, "strength": strength, "impact": measured}


def _numbers(one: Latency) -> dict[str, float | None]:
    """Return a latency for JSON, which has no NaN."""
    return {
        name: None if math.isnan(value) else value
        for name, value in asdict(one).items()
    }


def _print_impact(impact: Impact) -> None:
    table = Table(box=None)
    table.add_column("call")
    for column in ("p50 before", "after", "p95 before", "after", "errors"):
        table.add_column(column, justify="right")
    for kind, after in impact.after.items():
        before = impact.before[kind]
        table.add_row(kind, *_cells(before, after))
    Console(stderr=True).print(table)


def _cells(before: Latency, after: Latency) -> Sequence[str]:
    pairs = ((before.p50, after.p50), (before.p95, after.p95))
    times = [
        "-" if math.isnan(value) else f"{value * 1000:.0f} ms"
        for pair in pairs
        for value in pair
    ]
    return [*times, f"{after.errors} of {after.calls}"]


def _end(folder: Path, fault: Fault, planted: PlantedFault | None) -> None:
    """Take a fault back, unless somebody has, and may have planted it anew."""
    now = Journal(folder).find(fault.key)
    if planted and now and now.since == planted.since:
        _say_taken_back(take_back(Site(folder, Console(stderr=True)), fault.key))
    else:
        click.echo(f"{fault.title} was already taken back.")


def _reject(site: Site, fault: Fault, *, take_back_too: bool) -> None:
    if take_back_too:
        take_back(site, fault.key)
        message = (
            f"The calls did not become slower, so {fault.title} was taken back. "
            f"{_advise_on_strength(fault)}"
        )
        raise FaultError(message)
    message = (
        f"{fault.title} is planted, but the calls did not become slower. Take it back "
        f"with `keylag fault stop {fault.key}`. {_advise_on_strength(fault)}"
    )
    raise FaultError(message)


def _advise_on_strength(fault: Fault) -> str:
    strength = fault.strength
    if not strength.unit:
        return "This load may not need what it takes away."
    return (
        f"Choose a --strength between {strength.lowest:g} and {strength.highest:g} "
        f"{strength.unit} that slows calls more."
    )


def _say_planted(fault: Fault, strength: float) -> None:
    text = _strength_text(fault.strength, strength)
    how_strong = f" ({text})" if text else ""
    click.echo(
        f"{fault.title} is planted{how_strong}. {fault.summary} "
        f"Take it back with `keylag fault stop {fault.key}`.",
        err=True,
    )


def _say_taken_back(keys: Iterable[str]) -> None:
    names = ", ".join(FAULTS[key].title for key in keys)
    click.echo(f"Took back {names}.")
