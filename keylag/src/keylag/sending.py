"""Send a plan's load to a Keystone, showing how far it is."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from keylag import jmeter
from keylag.follow import Progress
from keylag.plans import Plan
from keylag.state import state_folder
from keylag.target import Target, TargetError
from keylag.tools import jmeter as jmeter_tool
from keylag.tools.install import ready


def send(
    plan: Plan, where: Target, chosen: Mapping[str, str], out: Path, console: Console
) -> jmeter.Result:
    """Send the load and leave its samples in `out`; raises as `jmeter.run` does."""
    load = load_of(plan, where, chosen)
    expected = plan.expected(load.properties)
    if not console.is_terminal:
        console.print(f"Sending {plan.name}: {expected or 'unlimited'} requests")
    bar = ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} requests, {task.fields[errors]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(plan.name, total=expected, errors="no errors")

        def report(seen: Progress) -> None:
            errors = f"{seen.errors or 'no'} errors"
            bar.update(task, completed=seen.done, errors=errors)

        return jmeter.run(load, home=home(), out=out, on_progress=report)


def home() -> Path:
    """Return JMeter's own folder; raises ToolError if it is not set up."""
    return ready(jmeter_tool.TOOL, state_folder() / "tools").resolve().parents[1]


def load_of(plan: Plan, where: Target, chosen: Mapping[str, str]) -> jmeter.Load:
    """Combine a plan and a Keystone; what the plan does not take is left out.

    Raises TargetError if the plan needs what this Keystone lacks.
    """
    for name, why in where.absent.items():
        if name in plan.defaults and name not in chosen:
            raise TargetError(why)
    known = {**where.properties, **chosen}
    return jmeter.Load(
        plan,
        {name: value for name, value in known.items() if name in plan.defaults},
        {name: value for name, value in where.secrets.items() if name in plan.defaults},
    )
