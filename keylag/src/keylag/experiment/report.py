"""Write the reports of a run: result.json, report.md and report.html."""

from dataclasses import replace

from keylag.experiment import charts, messages
from keylag.experiment.analysis import compare_arms
from keylag.experiment.measures import PARTS
from keylag.experiment.result import analyse_run, to_json
from keylag.experiment.run_folder import RunFolder, RunFolderError
from keylag.experiment.samples import Row
from keylag.report.jinja import jinja_environment
from keylag.state import write_output

TIME_MEASURES = ("p50", "p95", "mean", *PARTS)
"""Measures in seconds; the others are requests per second and counts."""


def write_reports(folder: RunFolder) -> None:
    """Analyse the run in a folder and write its three reports there."""
    result = analyse_run(folder)
    context = {"result": result, "rows": folder.load_rows()}
    texts = {
        "result.json": to_json(result),
        "report.md": _render("experiment.md.j2", **context),
        "report.html": _render("experiment.html.j2", **context),
    }
    for name, text in texts.items():
        write_output(folder.path / name, text)


def _render(template: str, **context: object) -> str:
    environment = jinja_environment()
    environment.globals.update(
        charts=charts,
        messages=messages,
        format_figure=format_figure,
        format_difference=format_difference,
    )
    return environment.get_template(template).render(**context)


def format_figure(name: str, value: float) -> str:
    """Format a figure without its unit; times are in milliseconds."""
    return f"{value * 1000:.2f}" if name in TIME_MEASURES else f"{value:.2f}"


def format_difference(name: str, low: float, mid: float, high: float) -> str:
    """Format a difference and its interval, in the unit of `format_figure`."""
    factor = 1000 if name in TIME_MEASURES else 1
    return f"{mid * factor:+.2f} [{low * factor:+.2f}, {high * factor:+.2f}]"


def compare_runs(first: RunFolder, second: RunFolder) -> str:
    """Return a Markdown comparison of all arms of two runs.

    Rounds are paired by number.  Pairing rounds of different runs removes no noise, and
    no interval covers what changed between the runs.  Raises PlanError, and
    RunFolderError without a run, for the same run twice, and for different loads.
    """
    folders = first, second
    plans = [folder.load_plan() for folder in folders]
    names = _distinct_names(first, second)
    loads = [(plan.load, plan.design.turn_seconds) for plan in plans]
    if loads[0] != loads[1]:
        message = "The runs have different loads, so their arms cannot be compared."
        raise RunFolderError(message)
    rows: list[Row] = []
    arms: list[str] = []
    for folder, plan, name in zip(folders, plans, names, strict=True):
        renamed = {arm: f"{name}/{arm}" for arm in plan.arm_names}
        arms += renamed.values()
        rows += [replace(row, arm=renamed[row.arm]) for row in folder.load_rows()]
    base, *others = arms
    decision = plans[0].decision
    looks = first.load_state().looks
    return _render(
        "experiments.md.j2",
        base=base,
        comparisons=compare_arms(rows, base, others, decision, looks),
        measure=decision.measure,
    )


def _distinct_names(first: RunFolder, second: RunFolder) -> tuple[str, str]:
    # The shortest ends of both paths that differ.
    one, other = first.path.resolve().parts, second.path.resolve().parts
    for length in range(1, max(len(one), len(other)) + 1):
        if (tail := one[-length:]) != other[-length:]:
            return "/".join(tail), "/".join(other[-length:])
    message = f"{first.path} and {second.path} are the same run. Choose two runs."
    raise RunFolderError(message)
