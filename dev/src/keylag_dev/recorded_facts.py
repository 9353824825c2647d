"""Facts of a window as JSON, so that other rules can judge them again."""

from collections.abc import Mapping
from typing import Any

from keylag.diagnosis.facts import Facts, Window, make_calls
from keylag.diagnosis.prometheus import Sample


def record(facts: Facts) -> dict[str, Any]:
    """Return what `recall` needs: the window, and Prometheus' answers by name."""
    return {
        "start": facts.window.start,
        "end": facts.window.end,
        "answers": {
            name: [[dict(one.labels), one.value] for one in samples]
            for name, samples in facts.answers.items()
        },
    }


def recall(recorded: Mapping[str, Any]) -> Facts:
    """Return the facts, without the queries that asked for them."""
    window = Window(recorded["start"], recorded["end"])
    answers = {
        name: [Sample(labels, value) for labels, value in samples]
        for name, samples in recorded["answers"].items()
    }
    return Facts(window, make_calls(answers, window), answers)
