"""Compares what findings predict with what clients saw with the fault and without."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from scipy import stats

from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import MATTERS, Saving
from keylag.diagnosis.verification import Check, check_as_json
from keylag.experiment.interval import Interval
from keylag_dev.diagnosis_scores import PATH, Score, references

CONFIDENCE: Final = 0.95
FAILED: Final = 0.01
"""With more failed calls their latency says nothing."""


def savings(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Return both for each single fault, in the shape of a calibration's results."""
    return [
        {"fault": one.case, "verification": {"calls": calls}}
        for one in scores
        if len(one.expected) == 1 and not one.is_reference
        if (calls := dict(_calls(one, scores)))
    ]


def _calls(score: Score, scores: Sequence[Score]) -> Iterator[tuple[str, Any]]:
    findings = {one["id"]: one for one in score.document["findings"]}
    predicted = findings.get(score.expected[0], {"calls": {}})["calls"]
    calm = references(score, scores)
    for label, slow in score.slices.items():
        key = label.replace(PATH, "")
        quick = [mean for one in calm for mean in one.slices.get(label, ())]
        if not quick or (predicted.get(key, {}).get("share") or 0.0) < MATTERS:
            continue
        latency = score.latency[label]
        check = Check(
            (key, ""),
            Saving(*predicted[key]["saving_seconds"]),
            _difference(slow, quick),
            ratio(latency.errors, latency.calls) <= FAILED,
        )
        yield key, check_as_json(check)


def _difference(slow: Sequence[float], quick: Sequence[float]) -> Interval | None:
    """Return how much longer calls took, by Welch's t-test; None with too few."""
    if min(len(slow), len(quick)) < 2:  # noqa: PLR2004 - a variance needs two
        return None
    test = stats.ttest_ind(slow, quick, equal_var=False)
    bounds = test.confidence_interval(CONFIDENCE)
    middle = sum(slow) / len(slow) - sum(quick) / len(quick)
    return Interval(float(bounds.low), middle, float(bounds.high))
