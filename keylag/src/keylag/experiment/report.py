"""The reports of a run: result.json, report.md and report.html."""

from dataclasses import replace

from keylag.experiment import charts, messages
from keylag.experiment.analysis import compare_arms
from keylag.experiment.result import analyse_run, to_json
from keylag.experiment.run_folder import RunFolder, RunFolderError
from keylag.experiment.samples import Row
from keylag.report.pages import templates
from keylag.state import write_output

TIME_MEASURES = ("p50", "p95", "mean")
"""Measures that are times; the others are counts."""


def write_reports(folder: RunFolder) -> None:
    """Judge the run in a folder and write all three there."""
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
    environment = templates()
    environment.globals.update(
        charts=charts,
        messages=messages,
        format_figure=format_figure,
        format_difference=format_difference,
    )
    return environment.get_template(template).render(**context)


def format_figure(name: str, value: float) -> str:
    """Write a figure: times in milliseconds, without the unit."""
    return f"{value * 1000:.2f}" if name in TIME_MEASURES else f"{value:.2f}"


def format_difference(name: str, low: float, mid: float, high: float) -> str:
    """Write a difference with its interval, in the unit of `format_figure`."""
    factor = 1000 if name in TIME_MEASURES else 1
    return f"{mid * factor:+.2f} [{low * factor:+.2f}, {high * factor:+.2f}]"


def compare_runs(first: RunFolder, second: RunFolder) -> str:
    """Compare the arms of two runs, pairing their rounds by number.

    Raises PlanError, or FolderError if both are one run.  Rounds of two runs have
    nothing in common, so pairing them removes no noise; it is right all the same.
    """
    rows: list[Row] = []
    arms: list[str] = []
    for folder, name in zip(
        (first, second), _distinct_names(first, second), strict=True
    ):
        renamed = {arm: f"{name}/{arm}" for arm in folder.load_plan().arm_names}
        arms += renamed.values()
        rows += [replace(row, arm=renamed[row.arm]) for row in folder.load_rows()]
    base, *others = arms
    decision = first.load_plan().decision
    return _render(
        "experiments.md.j2",
        base=base,
        comparisons=compare_arms(rows, base, others, decision),
        measure=decision.measure,
    )


def _distinct_names(first: RunFolder, second: RunFolder) -> tuple[str, str]:
    """Name two runs by the ends of their paths, as far as it takes to differ."""
    one, other = first.path.resolve().parts, second.path.resolve().parts
    for length in range(1, max(len(one), len(other)) + 1):
        if (tail := one[-length:]) != other[-length:]:
            return "/".join(tail), "/".join(other[-length:])
    message = f"{first.path} and {second.path} are one run; compare it with another."
    raise RunFolderError(message)
