"""Writes a page of a score of `make test-diagnosis`.

    python -m keylag_dev.diagnosis_page out/diagnosis/TIME
    python -m keylag_dev.diagnosis_page --page unseen out/diagnosis/TIME

The folder is that of one run. The page has its table, its summary, some diagnoses in
full, one of them of a pair, and each wrong one.  The windows are kept for the tests,
which judge them by the current rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from keylag.diagnosis.verification import DISAGREES
from keylag.paths import CHECKOUT
from keylag_dev import diagnosis_calibration as calibration
from keylag_dev.diagnosis_savings import savings
from keylag_dev.diagnosis_score import judge
from keylag_dev.diagnosis_scores import Score, read_scores, slower_text, summary
from keylag_dev.recorded_facts import (
    DATA,
    KEPT,
    KEPT_UNSEEN,
    RecordedWindow,
    keep,
    kept,
    recall,
)

HEADINGS: Final = (
    *("case", "named", "right", "slower calls"),
    *("widest category", "`doctor`", "seconds"),
)
SCORE_INTRODUCTION: Final = """\
# How often the diagnosis is right

<!-- Made by `python -m keylag_dev.diagnosis_page`; run it again instead of editing. -->

`make test-diagnosis` plants each cause in a stack of real servers, alone, in pairs and
too weak to matter, sends token calls from JMeter, and lets `keylag diagnose` say what
it sees in a short window, without a baseline. *Right* means: the planted cause is
the first finding; of a pair, both are among the first three; of a healthy stack and of
a cause that is too weak to matter, there is no finding.

Beside it are three baselines: the widest category of time, as an operator would read it
from the breakdown, `keystone-manage doctor`, and chance.

The rules were mended with windows of such faults in earlier runs. So the shares say
that the rules tell these causes apart. They do not say how often a new cause is named.
`python -m keylag_dev.diagnosis_judge` judges the windows again after a change, and
`dev/tests/test_recorded_windows.py` those of all runs.

All windows were recorded in one run without an interruption, by the present rules and
with ProxySQL and Galera, by `python -m keylag_dev.diagnosis_score --window 40
--healthy 1 healthy faults pairs decoys`. Of C8+D1 few calls end in 40 s, so its window
has 90 s. Beside the windows ran nothing but a shell that edited files, and for some
minutes database servers without work. Before some windows, while the fault was planted
and the load warmed up, short tests of other code ran.
[Faults that no rule was tuned for](diagnosis-unseen.md) have a page of their own.
"""
UNSEEN_INTRODUCTION: Final = """\
# How often the diagnosis is right about faults that no rule was tuned for

<!-- Made by `python -m keylag_dev.diagnosis_page --page unseen`; run it again instead
of editing. -->

`make test-diagnosis CASES="strengths healthy"` plants faults at other strengths than
[the score](diagnosis-score.md) does, and lets `keylag diagnose` say what it sees in
each window, without a baseline. Of the 14 faults, 12 are stronger, C6 is as strong with
another limit, and D2:disk, which allows more writes, is weaker. Healthy stacks have
several windows, at three loads.

The first such score had weaker faults: 13 of 21 were named first, and no healthy window
had a finding. The rules have been mended since, and name 15 of these 21. It is kept in
`dev/tests/data/first-unseen-windows.jsonl.gz`, and the strengths below are new.

The table has what the rules said when these windows were recorded: no rule had been
changed with them. *Right* means: the planted cause is the first finding, or there is
none on a healthy stack. A fault that slowed no call by a fifth does not count.
"""

CALIBRATION: Final = """
## Predicted and measured

What each call would save without the fault: as the finding predicts it, and as clients
measured it, as the mean of the case less that of the same stacks and loads without the
fault. The measured interval is Welch's at 95 %, from ten slices of each window; it
cannot tell where it holds zero. A kind of calls is left out if the finding costs less
than a sixth of it.
"""


@dataclass(frozen=True)
class Page:
    """A page, the windows that it is about, and what is printed in full."""

    name: str
    windows: Path
    introduction: str
    in_full: Sequence[str] = ()
    """Cases whose diagnosis is printed; each wrong one is, too."""
    tuned: Sequence[str] = ()
    """Cases that do not count: their rules were mended when they were tried by hand."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why predictions do not agree, by fault."""
    kept_runs: str = ""
    """Pattern of the kept windows whose healthy ones are counted, too."""

    @property
    def file(self) -> Path:
        """The file of the page."""
        return CHECKOUT / "docs" / self.name


SCORE: Final = Page(
    "diagnosis-score.md",
    KEPT,
    SCORE_INTRODUCTION,
    # A cache, a database, clients, a host, a pair.
    ("C2", "D4", "H3", "W2", "C4+H3"),
    kept_runs="*-windows.jsonl.gz",
    reasons={
        "D3": "All else was faster than in the healthy windows: a validation took 9 ms"
        " instead of 13.",
        "W1": "More workers share the same two CPUs, and a log-in needs one of them.",
        "W2": "A healthy validation waits for a CPU, too, beside the load on the same"
        " machine.",
    },
)
UNSEEN: Final = Page(
    "diagnosis-unseen.md",
    KEPT_UNSEEN,
    UNSEEN_INTRODUCTION,
    reasons={
        "C8 at 20": "The clients that change roles keep workers busy, so others also"
        " wait.",
        "D1 at 20": "Messages of 42 ms are in the bucket of 25 to 50 ms, from which the"
        " rule takes 37 ms.",
    },
)

PAGES: Final[Mapping[str, Page]] = {
    "score": SCORE,
    "unseen": UNSEEN,
}


def render(scores: Sequence[Score], page: Page = SCORE) -> str:
    """Return the text of a page."""
    return "\n".join(_lines(scores, page)) + "\n"


def _lines(scores: Sequence[Score], page: Page) -> Iterator[str]:
    start = min(one.recorded["start"] for one in scores)
    end = max(one.recorded["end"] for one in scores)
    yield page.introduction
    counted = [one for one in scores if one.case not in page.tuned]
    yield from (f"- {line}" for line in summary(counted))
    if tuned := [one for one in scores if one.case in page.tuned]:
        yield (
            f"- {', '.join(one.case for one in tuned)} do not count, because their"
            " rules were mended when they were tried by hand; right:"
            f" {sum(one.is_right for one in tuned)} of {len(tuned)}"
        )
    seconds = scores[0].recorded["end"] - scores[0].recorded["start"]
    yield (
        f"- the windows of {seconds:.0f} s were recorded within"
        f" {(end - start) / 60:.0f} minutes"
    )
    if page.kept_runs:
        yield f"- {_kept_alarms(page.kept_runs)}"
    yield "\n## Each case\n"
    yield "Healthy windows without a finding are not listed.\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for one in scores:
        if one.is_reference and one.is_right:
            continue
        cells = (
            one.case,
            " ".join(one.named) or "nothing",
            "yes" if one.is_right else "**no**",
            slower_text(one, scores),
            one.category.replace("_", " "),
            " ".join(one.doctor) or "-",
            f"{one.seconds:.1f}",
        )
        yield f"| {' | '.join(cells)} |"
    calibrated = savings(scores)
    yield CALIBRATION
    yield from calibration.table(calibrated)
    yield f"\n{calibration.summary(calibrated)}"
    yield from _disagreements(calibrated, page.reasons)
    by_case = {one.case: one for one in scores}
    shown = [by_case[name] for name in page.in_full if name in by_case]
    wrong = [one for one in scores if not one.is_right and one not in shown]
    for title, found in (
        ("Diagnoses in full", shown),
        ("Those that were wrong", wrong),
    ):
        if found:
            yield f"\n## {title}"
        for one in found:
            yield from _in_full(one)


def _kept_alarms(pattern: str) -> str:
    """Return the false alarms in the healthy windows of kept runs."""
    healthy = [
        one
        for file in DATA.glob(pattern)
        for one in kept(file)
        if one.case.startswith("healthy")
    ]
    alarms = sum(bool(judge(one.facts)["named"]) for one in healthy)
    number = f"{alarms} of {len(healthy)}"
    return f"false alarms in the healthy windows of all runs: {number}"


def _disagreements(
    results: Sequence[Mapping[str, Any]], reasons: Mapping[str, str]
) -> Iterator[str]:
    yield ""
    for one in results:
        calls = one["verification"]["calls"].values()
        if any(call["verdict"] == DISAGREES for call in calls):
            fault = one["fault"]
            yield f"- {fault}: {reasons.get(fault, 'not explained.')}"


def _in_full(score: Score) -> Iterator[str]:
    yield f"\n### {score.case}\n"
    for one in score.document.get("unlikely", ()):
        if one["id"] in score.expected:
            yield f"Why not {one['id']}: {one['why']}\n"
    lines = (line.rstrip() for line in score.text.strip().splitlines())
    yield from ("```text", *lines, "```")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--page",
    "name",
    type=click.Choice(list(PAGES)),
    default="score",
    show_default=True,
    help="unseen: no rule was tuned with it.",
)
def main(folder: Path, name: str) -> None:
    """Write the page of a score, and keep its windows for the tests."""
    page = PAGES[name]
    scores = read_scores(folder)
    keep(
        (
            RecordedWindow(one.case, one.expected, recall(one.recorded))
            for one in scores
        ),
        page.windows,
    )
    page.file.write_text(render(scores, page), encoding="utf-8")


if __name__ == "__main__":
    main()
