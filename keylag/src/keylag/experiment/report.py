"""The reports of a run: result.json, report.md and report.html."""

from dataclasses import replace

from keylag.experiment import charts, words
from keylag.experiment.analysis import compare
from keylag.experiment.journal import Folder, FolderError
from keylag.experiment.result import as_json, of_folder
from keylag.experiment.samples import Row
from keylag.report.jinja import jinja_environment
from keylag.state import write_output

IN_SECONDS = ("p50", "p95", "mean")
"""Measures that are times; the others are counts."""


def write(folder: Folder) -> None:
    """Judge the run in a folder and write all three there."""
    result = of_folder(folder)
    known = {"result": result, "rows": folder.rows()}
    texts = {
        "result.json": as_json(result),
        "report.md": _render("experiment.md.j2", **known),
        "report.html": _render("experiment.html.j2", **known),
    }
    for name, text in texts.items():
        write_output(folder.path / name, text)


def _render(template: str, **known: object) -> str:
    environment = jinja_environment()
    environment.globals.update(charts=charts, words=words, amount=amount, change=change)
    return environment.get_template(template).render(**known)


def amount(name: str, value: float) -> str:
    """Write a figure: times in milliseconds, without the unit."""
    return f"{value * 1000:.2f}" if name in IN_SECONDS else f"{value:.2f}"


def change(name: str, low: float, mid: float, high: float) -> str:
    """Write a difference with its interval, in the unit of `amount`."""
    factor = 1000 if name in IN_SECONDS else 1
    return f"{mid * factor:+.2f} [{low * factor:+.2f}, {high * factor:+.2f}]"


def markdown_of_two(first: Folder, second: Folder) -> str:
    """Compare the arms of two runs, pairing their blocks by number.

    Raises PlanError, or FolderError if both are one run.  Blocks of two runs have
    nothing in common, so pairing them removes no noise; it is right all the same.
    """
    rows: list[Row] = []
    arms: list[str] = []
    for folder, name in zip((first, second), _names(first, second), strict=True):
        renamed = {arm: f"{name}/{arm}" for arm in folder.plan().order}
        arms += renamed.values()
        rows += [replace(row, arm=renamed[row.arm]) for row in folder.rows()]
    base, *others = arms
    decision = first.plan().decision
    return _render(
        "experiments.md.j2",
        base=base,
        comparisons=compare(rows, base, others, decision),
        measure=decision.measure,
    )


def _names(first: Folder, second: Folder) -> tuple[str, str]:
    """Name two runs by the ends of their paths, as far as it takes to differ."""
    one, other = first.path.resolve().parts, second.path.resolve().parts
    for length in range(1, max(len(one), len(other)) + 1):
        if (tail := one[-length:]) != other[-length:]:
            return "/".join(tail), "/".join(other[-length:])
    message = f"{first.path} and {second.path} are one run; compare it with another."
    raise FolderError(message)
