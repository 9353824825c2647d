"""Facts of a window as JSON, so that other rules can judge them again."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keylag.diagnosis.facts import Facts, Window, make_calls
from keylag.diagnosis.prometheus import Sample
from keylag.paths import CHECKOUT

DATA: Final = CHECKOUT / "dev" / "tests" / "data"
KEPT: Final = DATA / "score-windows.jsonl.gz"
"""Windows of the published score; tests judge all of this folder again."""
KEPT_UNSEEN: Final = DATA / "unseen-windows.jsonl.gz"
"""The same of faults at strengths for which no rule was tuned."""


@dataclass(frozen=True)
class RecordedWindow:
    """What was planted in a window, and what was measured."""

    case: str
    expected: tuple[str, ...]
    """Ids of the causes, none of a healthy stack."""
    facts: Facts


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


def keep(windows: Iterable[RecordedWindow], file: Path) -> None:
    """Write windows to a file, the same bytes for the same windows."""
    lines = (
        json.dumps(
            {"case": one.case, "expected": one.expected, "facts": record(one.facts)}
        )
        for one in windows
    )
    text = "".join(f"{line}\n" for line in lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def kept(file: Path) -> Iterator[RecordedWindow]:
    """Yield the windows of a file."""
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        one = json.loads(line)
        expected = tuple(one["expected"])
        yield RecordedWindow(one["case"], expected, recall(one["facts"]))
