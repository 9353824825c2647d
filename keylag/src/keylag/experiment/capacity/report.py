"""The report of a capacity measurement, and its progress lines."""

from collections.abc import Iterator, Mapping
from math import isinf
from pathlib import Path
from typing import Any

from keylag.experiment.capacity.open_load import Trial
from keylag.experiment.capacity.ramp import STEP_RATIO
from keylag.experiment.capacity.result import (
    RateRange,
    compare_capacities,
    to_json,
    trial_at,
)
from keylag.experiment.capacity.run import CapacityRun, Settings
from keylag.experiment.messages import describe_arms_and_load
from keylag.experiment.plan import SECONDS_PER_MINUTE, Plan
from keylag.report.jinja import jinja_environment
from keylag.state import write_output


def write_reports(
    run: CapacityRun, environment: Mapping[str, Any], folder: Path
) -> None:
    """Write report.md and result.json."""
    jinja = jinja_environment()
    jinja.globals.update(
        format_rate=format_rate,
        format_range=format_range,
        format_p95=format_p95,
        trial_at=trial_at,
    )
    report = jinja.get_template("capacity.md.j2").render(
        run=run,
        arms=compare_capacities(run),
        environment=environment,
        resolution=f"{100 * (STEP_RATIO - 1):.0f} %",
    )
    write_output(folder / "report.md", report)
    write_output(folder / "result.json", to_json(run, environment))


def format_rate(rate: float | None) -> str:
    """Format requests per second without their unit; None becomes a dash."""
    return "-" if rate is None else f"{rate:.2f}"


def format_range(found: RateRange | None) -> str:
    """Format a mean with the lowest and the highest repeat; None becomes a dash."""
    if found is None:
        return "-"
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def format_p95(trial: Trial | None, limit_seconds: float) -> str:
    """Format the 95th percentile of a trial in milliseconds; None becomes a dash."""
    if trial is None:
        return "-"
    if isinf(trial.p95_seconds):
        return f"> {1000 * limit_seconds:.0f}"
    return f"{1000 * trial.p95_seconds:.0f}"


def describe_trial(run: CapacityRun) -> str:
    """Return a line about the trial that has just ended."""
    ramp = run.ramps[-1]
    trial = ramp.trials[-1]
    left = max(0.0, run.settings.minutes - run.seconds / SECONDS_PER_MINUTE)
    p95 = format_p95(trial, run.settings.limit_seconds)
    facts = [f"p95 {p95} ms", f"{trial.failed} of {trial.requests} failed"]
    return (
        f"{ramp.arm}, repeat {ramp.repeat + 1} of {run.settings.repeats}: "
        f"{format_rate(trial.rate)}/s {'held' if trial.held else 'not held'} "
        f"({', '.join(filter(None, [*facts, trial.problem]))}). "
        f"At most {left:.0f} min left."
    )


def describe_measurement(plan: Plan, settings: Settings) -> Iterator[str]:
    """Yield lines about the arms, the load and the duration."""
    minutes = settings.forecast_minutes(len(plan.arms))
    yield f"Which rate does each arm hold? {plan.question}"
    yield from describe_arms_and_load(plan)
    yield (
        f"A rate is held if 95 % of its requests take less than "
        f"{settings.limit_seconds:g} s from their arrival, and at most 1 % fail, in a "
        f"trial of {settings.trial_seconds:g} s."
    )
    yield (
        f"Time: about {minutes:.0f} min, at most {settings.minutes:g}, after all arms "
        f"have started; repeats of each arm: {settings.repeats}"
    )
    if minutes > settings.minutes:
        yield "The time limit is shorter than the forecast: give a longer --minutes."
