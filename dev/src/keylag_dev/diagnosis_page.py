"""Writes docs/diagnosis-score.md from a score of `make test-diagnosis`.

    python -m keylag_dev.diagnosis_page out/diagnosis/TIME

The folder is that of one run. The page has its table, its summary, five diagnoses in
full, one of them of a pair, and each wrong one.  The windows are kept for the tests,
which judge them by the rules of their day.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from keylag.diagnosis.verification import DISAGREES
from keylag.paths import CHECKOUT
from keylag_dev import diagnosis_calibration as calibration
from keylag_dev.diagnosis_savings import savings
from keylag_dev.diagnosis_scores import Score, read_scores, slower_text, summary
from keylag_dev.recorded_facts import RecordedWindow, keep, recall

PAGE: Final = CHECKOUT / "docs" / "diagnosis-score.md"
IN_FULL: Final = ("C2", "D4", "H3", "W2", "C4+H3")
"""Cases whose diagnosis is printed: a cache, a database, clients, a host, a pair."""
HEADINGS: Final = (
    *("case", "named", "right", "slower calls"),
    *("widest category", "`doctor`", "seconds"),
)
INTRODUCTION: Final = """\
# How often the diagnosis is right

<!-- Made by `python -m keylag_dev.diagnosis_page`; run it again instead of editing. -->

`make test-diagnosis` plants each cause in a stack of real servers, alone, in pairs and
too weak to matter, sends token calls from JMeter, and lets `keylag diagnose` say what
it sees in a window of a minute, without a baseline. *Right* means: the planted cause is
the first finding; of a pair, both are among the first three; of a healthy stack and of
a cause that is too weak to matter, there is no finding.

Beside it are three baselines: the widest category of time, as an operator would read it
from the breakdown, `keystone-manage doctor`, and chance.

The rules have been mended with windows like these. So the shares say that the rules
tell these causes apart. They do not say how often a new cause is named.
`python -m keylag_dev.diagnosis_judge` judges the windows again after a change.
"""

DISAGREE: Final[Mapping[str, str]] = {
    "C8": "The clients that change roles keep workers busy, so others also wait.",
    **dict.fromkeys(
        ("A2", "D3"),
        "Log-outs took longer in one of the healthy windows: a commit waited 10 ms for"
        " the disk there.",
    ),
}
"""Why predictions of the published score do not agree, by fault."""
CALIBRATION: Final = """
## Predicted and measured

What each call would save without the fault: as the finding predicts it, and as clients
measured it, as the mean of the case less that of the healthy stacks under the same
load. The measured interval is Welch's at 95 %, from ten slices of each window; it
cannot tell where it holds zero. A kind of calls is left out if the finding costs less
than a sixth of it.
"""


def render(scores: Sequence[Score]) -> str:
    """Return the page."""
    return "\n".join(_lines(scores)) + "\n"


def _lines(scores: Sequence[Score]) -> Iterator[str]:
    start = min(one.recorded["start"] for one in scores)
    end = max(one.recorded["end"] for one in scores)
    yield INTRODUCTION
    yield from (f"- {line}" for line in summary(scores))
    yield f"- the windows were recorded within {(end - start) / 60:.0f} minutes"
    yield "\n## Each case\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for one in scores:
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
    yield from _disagreements(calibrated)
    by_case = {one.case: one for one in scores}
    yield "\n## Diagnoses in full"
    for name in IN_FULL:
        if name in by_case:
            yield from _in_full(by_case[name])
    wrong = [one for one in scores if not one.is_right and one.case not in IN_FULL]
    if wrong:
        yield "\n## Those that were wrong"
    for one in wrong:
        yield from _in_full(one)


def _disagreements(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    for one in results:
        calls = one["verification"]["calls"].values()
        if any(call["verdict"] == DISAGREES for call in calls):
            fault = one["fault"]
            yield f"- {fault}: {DISAGREE.get(fault, 'not explained.')}"


def _in_full(score: Score) -> Iterator[str]:
    yield f"\n### {score.case}\n"
    lines = (line.rstrip() for line in score.text.strip().splitlines())
    yield from ("```text", *lines, "```")


if __name__ == "__main__":
    published = read_scores(Path(sys.argv[1]))
    PAGE.write_text(render(published), encoding="utf-8")
    keep(
        RecordedWindow(one.case, one.expected, recall(one.recorded))
        for one in published
    )
