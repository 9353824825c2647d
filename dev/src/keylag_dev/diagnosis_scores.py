"""The scores of a diagnosis: one line of JSON for each case, and their table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from keylag.diagnosis.registry import RULES
from keylag.faults.impact import Impact
from keylag.faults.probe import Latency
from keylag.stack_record import parse_options
from keylag_dev.diagnosis_cases import Load

PATH: Final = " /v3/auth/tokens"
"""Part of the labels of token calls' samples."""
FILE: Final = "scores.jsonl"
LISTS: Final = ("expected", "named", "doctor")
LEADING: Final = 3
"""A cause among so many is found, if not first."""
SUSPECT: Final = {
    "sql": "C1",
    "cache": "C4",
    "revocation": "R1",
    "password_hash": "H1",
    "token_crypto": "T1",
    "orm": "C1",
    "other": "A2",
}
"""What an operator suspects who sees only the widest category."""


def answers(expected: Sequence[str], named: Sequence[str]) -> bool:
    """Return whether findings are right: of a pair, both among the first ones."""
    if len(expected) > 1:
        return set(expected) <= set(named[:LEADING])
    return list(named[: len(expected) or None]) == list(expected)


@dataclass(frozen=True)
class Score:
    """What was said of one case."""

    case: str
    expected: tuple[str, ...]
    named: tuple[str, ...]
    """Ids of findings, the first one first."""
    load: Load
    latency: Mapping[str, Latency]
    """What clients measured, by kind of call."""
    slices: Mapping[str, Sequence[float]]
    """Means of the same in parts of the window, in seconds."""
    category: str
    """The widest category."""
    doctor: tuple[str, ...]
    """Ids of causes that `keystone-manage doctor` names."""
    seconds: float
    """Time to answer."""
    text: str
    """The diagnosis as the terminal shows it."""
    document: dict[str, Any]
    recorded: dict[str, Any]
    """The facts, as `recorded_facts` writes them."""

    @property
    def is_healthy(self) -> bool:
        """Return whether the stack had no fault, not even a weak one."""
        return self.case.startswith("healthy")

    @property
    def is_reference(self) -> bool:
        """Return whether it is a measure of faults: a stack with none, or none more."""
        return self.is_healthy or self.case.startswith("reference")

    @property
    def is_first(self) -> bool:
        """Return whether the first finding is right; of a healthy stack, none."""
        if not self.expected:
            return not self.named
        return self.named[:1] == self.expected[:1]

    @property
    def is_leading(self) -> bool:
        """Return whether all causes are among the first ones."""
        return set(self.expected) <= set(self.named[:LEADING])

    @property
    def is_right(self) -> bool:
        """Return whether the answer is what the case asks for."""
        return answers(self.expected, self.named)

    @property
    def category_is_right(self) -> bool:
        """Return whether the widest category leads to the cause."""
        return self.expected[:1] == (SUSPECT[self.category],)


def references(score: Score, scores: Sequence[Score]) -> list[Score]:
    """Return the cases without its faults under the same load."""
    return [one for one in scores if one.is_reference and one.load == score.load]


def slower_calls(score: Score, scores: Sequence[Score]) -> list[str] | None:
    """Return the kinds of calls that a case made slower.

    None without a healthy case under the same load to compare with.
    """
    for one in references(score, scores):
        return Impact(one.latency, score.latency).slower
    return None


def slower_text(score: Score, scores: Sequence[Score]) -> str:
    """Return the kinds of calls that a case made slower, as words."""
    found = slower_calls(score, scores)
    if found is None:
        return "?"
    return ", ".join(sorted(one.replace(PATH, "") for one in found)) or "none"


def table(scores: Sequence[Score]) -> Table:
    """Return the scores of all cases."""
    made = Table(
        *("case", "named", "first", "leading", "slower calls"),
        *("widest category", "doctor", "seconds"),
    )
    for one in scores:
        made.add_row(
            one.case,
            " ".join(one.named) or "-",
            "yes" if one.is_first else "NO",
            "yes" if one.is_leading else "NO",
            slower_text(one, scores),
            one.category,
            " ".join(one.doctor) or "-",
            f"{one.seconds:.1f}",
        )
    return made


def summary(scores: Sequence[Score]) -> list[str]:
    """Return the shares of right answers, beside those of the baselines."""
    planted = [one for one in scores if len(one.expected) == 1 and not one.is_reference]
    single = [one for one in planted if slower_calls(one, scores) != []]
    both = [one for one in scores if len(one.expected) > 1]
    calm = [one for one in scores if not one.expected]
    lines = []
    if single:
        n = len(single)
        first = sum(one.is_first for one in single)
        leading = sum(one.is_leading for one in single)
        category = sum(one.category_is_right for one in single)
        doctor = sum(one.expected[0] in one.doctor for one in single)
        lines += [
            f"right cause first: {first} of {n}",
            f"among the first {LEADING}: {leading} of {n}",
            f"the widest category leads to it: {category} of {n}",
            f"keystone-manage doctor names it: {doctor} of {n}",
            f"chance: {n / len(RULES):.1f} of {n}",
            f"faults that slowed no call, which do not count: {len(planted) - n}",
        ]
    if both:
        leading = sum(one.is_leading for one in both)
        lines.append(
            f"both of a pair among the first {LEADING}: {leading} of {len(both)}"
        )
    for title, found in (
        ("healthy stacks", [one for one in calm if one.is_healthy]),
        ("decoys", [one for one in calm if not one.is_healthy]),
    ):
        if found:
            alarms = sum(not one.is_first for one in found)
            lines.append(f"false alarms on {title}: {alarms} of {len(found)}")
    if scores:
        slowest = max(one.seconds for one in scores)
        lines.append(f"time to answer: at most {slowest:.1f} s")
    return lines


def append_score(score: Score, folder: Path) -> None:
    """Write a score at once, so that nothing is lost."""
    with (folder / FILE).open("a", encoding="utf-8") as results:
        results.write(json.dumps(asdict(score)) + "\n")


def read_scores(folder: Path) -> list[Score]:
    """Return the scores that a folder has."""
    file = folder / FILE
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [_score(json.loads(line)) for line in lines]


def _score(content: dict[str, Any]) -> Score:
    lists = {name: tuple(content[name]) for name in LISTS}
    latency = {name: Latency(**one) for name, one in content["latency"].items()}
    slices = {name: tuple(means) for name, means in content["slices"].items()}
    load = Load(
        **{
            **content["load"],
            "plans": tuple(content["load"]["plans"]),
            "options": parse_options(content["load"]["options"]),
        }
    )
    parts = {"latency": latency, "slices": slices, "load": load}
    return Score(**{**content, **lists, **parts})
