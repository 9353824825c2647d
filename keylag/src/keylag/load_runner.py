"""Send the load of a plan to a target, with a progress bar."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from keylag import jmeter
from keylag.jmeter_progress import Progress
from keylag.jmeter_run import LocalRun
from keylag.load_plans import LoadPlan
from keylag.load_target import LoadTarget, TargetError
from keylag.state import state_folder
from keylag.steps import Heartbeat
from keylag.tools import jmeter as jmeter_tool
from keylag.tools.install import require_tool


def send_load(  # noqa: PLR0913 - one for each part of a load
    plan: LoadPlan,
    target: LoadTarget,
    chosen: Mapping[str, str],
    out: Path,
    console: Console,
    *,
    sender: LocalRun | None = None,
) -> jmeter.LoadResult:
    """Send the load and write its samples to `out`.

    Raises TargetError as `build_load` does, and the errors of `jmeter.run`.
    """
    load = build_load(plan, target, chosen)
    sender = sender or LocalRun()
    expected = plan.expected_requests(load.properties, len(sender.engines) or 1)
    if sender.engines:
        console.print(describe_engines(plan, load.properties, len(sender.engines)))
    if not console.is_terminal:
        requests = f"{expected or 'unlimited'} requests"
        console.print(f"Sending {plan.name}: {requests}")
        with Heartbeat(console, f"Sending {plan.name}") as beat:
            return jmeter.run(
                load,
                home=jmeter_home(),
                out=out,
                on_progress=lambda now: beat.update(
                    f"Sending {plan.name}, {now.done} of {requests}"
                ),
                sender=sender,
            )
    bar = ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(
            "{task.completed} of {task.fields[expected]} requests,"
            " {task.fields[errors]}"
        ),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task(
            plan.name,
            total=expected,
            expected=expected or "unlimited",
            errors="no errors",
        )

        def report(progress: Progress) -> None:
            errors = f"{progress.errors or 'no'} errors"
            bar.update(task, completed=progress.done, errors=errors)

        return jmeter.run(
            load, home=jmeter_home(), out=out, on_progress=report, sender=sender
        )


def describe_engines(plan: LoadPlan, chosen: Mapping[str, str], engines: int) -> str:
    """Return what all engines send together; each sends the whole plan."""
    values = {**plan.defaults, **chosen}
    text = "1 engine" if engines == 1 else f"{engines} engines"
    if (users := values.get("threads", "")).isdecimal():
        text += f" x {users} virtual users = {engines * int(users)} virtual users"
    if rate := float(values.get("rate_per_second", 0)):
        text += f", {engines} x {rate:g} requests/s = {engines * rate:g} requests/s"
    return f"{text}."


def jmeter_home() -> Path:
    """Return JMeter's home folder; raises ToolError if JMeter is not set up."""
    return require_tool(jmeter_tool.TOOL, state_folder() / "tools").resolve().parents[1]


def build_load(
    plan: LoadPlan, target: LoadTarget, chosen: Mapping[str, str]
) -> jmeter.Load:
    """Combine the properties of a target with the chosen ones.

    Properties that the plan does not take are left out.  Raises TargetError if the
    plan needs a property that neither has.
    """
    for name, reason in target.missing.items():
        if name in plan.defaults and name not in chosen:
            raise TargetError(reason)
    properties = {**target.properties, **chosen}
    return jmeter.Load(
        plan,
        {name: value for name, value in properties.items() if name in plan.defaults},
        {
            name: value
            for name, value in target.secrets.items()
            if name in plan.defaults
        },
    )
