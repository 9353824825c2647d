"""Formats the figures: the tables of docs/limits.md, and JSON."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, Final

from keylag.experiment.interval import Interval
from keylag.lab.intervals import as_json
from keylag.paths import CHECKOUT
from keylag.phases import CATEGORY_NAMES
from keylag.tools.venvs import keystone_version
from keylag_bench.limits.figures import CallFigure, Figure, Figures
from keylag_bench.limits.tables import CALLS, OUTSIDE, PARTS, TUNINGS, Seconds, Setting

BLOCK: Final = re.compile(
    r"(<!-- figures, by `bench/limits.py --write` -->\n).*?(<!-- end of figures -->)",
    re.DOTALL,
)
PLACE_NAMES: Final = {**CATEGORY_NAMES, OUTSIDE: "outside Keystone"}
SHOWN_SHARE: Final = 0.05
"""Places are named from this share of the time above the least."""


def insert(text: str, figures: Figures, facts: Mapping[str, Any]) -> str:
    """Return a page with its figures replaced."""
    shown = to_markdown(figures, facts)
    return BLOCK.sub(lambda found: f"{found[1]}\n{shown}\n{found[2]}", text)


def to_json(figures: Figures, facts: Mapping[str, Any]) -> str:
    """Return all figures; intervals are [low, mid, high], times in seconds."""
    found = {**_plain(asdict(figures)), "facts": facts}
    return json.dumps(found, indent=2, default=asdict)


def _plain(value: Any) -> Any:
    # asdict has made dictionaries of the intervals.
    if isinstance(value, dict):
        if value.keys() == {"low", "mid", "high"}:
            return as_json(Interval(**value))
        return {name: _plain(one) for name, one in value.items()}
    return value


def to_markdown(figures: Figures, facts: Mapping[str, Any]) -> str:
    """Return the tables, and one conclusion for each of their rows."""
    return "\n".join([*_lines(figures, facts), ""])


def _lines(figures: Figures, facts: Mapping[str, Any]) -> Iterator[str]:
    yield _run_sentence(facts)
    yield "\n### The parts\n"
    yield from _table(
        ("part", "ms"),
        ([PARTS[name].title, _ms(one)] for name, one in figures.parts.items()),
    )
    yield (
        f"\nA log-in reads the user with {len(facts['statements'])} statements; "
        f"a validated token has {facts['cached_bytes']} bytes in the cache."
    )
    yield "\n### The tunings\n"
    yield from _table(("tuning", "change", "experiments", "risk"), _setting_rows())
    for name, call in CALLS.items():
        yield f"\n### {call.title}\n"
        yield from _call_table(figures.least[name], figures.calls[name])
        yield ""
        yield _least_sentence(call.parts, figures)
        for tuning, found in figures.calls[name].items():
            yield _conclusion(tuning, found)


def _run_sentence(facts: Mapping[str, Any]) -> str:
    size, minutes = facts["size"], facts["seconds"] / 60
    return (
        f"Keystone {keystone_version()}, one run on a machine with {os.cpu_count()} "
        f"processors and a load of {facts['load_before']:.1f} before the run: "
        f"{size.restarts} restarts with {size.rounds} rounds each, {minutes:.0f} "
        "minutes."
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(headings)
    yield _row("---" for _ in headings)
    for row in rows:
        yield _row(row)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _setting_rows() -> Iterator[Sequence[str]]:
    settings = [
        *(
            (tuning.title, one)
            for tuning in TUNINGS.values()
            for one in tuning.settings
        ),
        *((call.title, one) for call in CALLS.values() for one in call.settings),
    ]
    for title, one in settings:
        yield title, one.change, _experiments(one), one.risk


def _experiments(setting: Setting) -> str:
    return ", ".join(f"[`{name}`]({_report(name)})" for name in setting.experiments)


def _report(plan: str) -> str:
    report = f"experiments/{plan}/report.md"
    exists = (CHECKOUT / "docs" / report).exists()
    return report if exists else f"../experiments/{plan}.toml"


def _call_table(least: Figure, calls: Mapping[str, CallFigure]) -> Iterator[str]:
    headings = (
        "",
        "ms",
        "times the least",
        *PLACE_NAMES.values(),
        "statements",
        "cache calls",
    )
    rows = [["the least", _ms(least), "1", *_places(least.places), "", ""]]
    rows += [
        [
            TUNINGS[name].title,
            _ms(one),
            _interval(one.ratio),
            *_places(one.places),
            *(
                f"{one.counts[count]:.1f}"
                for count in ("sql_statements", "cache_calls")
            ),
        ]
        for name, one in calls.items()
    ]
    yield from _table(headings, rows)


def _places(seconds: Seconds) -> list[str]:
    return [f"{1000 * seconds.get(place, 0.0):.2f}" for place in PLACE_NAMES]


def _least_sentence(parts: Iterable[str], figures: Figures) -> str:
    ms = {name: 1000 * figures.parts[name].seconds.mid for name in parts}
    shown = [
        f"{PARTS[name].title.split(':')[0]} {_number(ms[name])}"
        for name in sorted(ms, key=lambda name: -ms[name])
    ]
    return f"- **The least**, in ms: {', '.join(shown)}."


def _conclusion(tuning: str, found: CallFigure) -> str:
    above_seconds = sum(found.above.values())
    shown = [
        f"{PLACE_NAMES[place]} {_number(1000 * seconds)}"
        for place, seconds in sorted(found.above.items(), key=lambda one: -abs(one[1]))
        if abs(seconds) > SHOWN_SHARE * abs(above_seconds)
    ]
    return (
        f"- **{TUNINGS[tuning].title}**: {_interval(found.ratio)} times the least. "
        f"Above it are {_number(1000 * above_seconds)} ms: {', '.join(shown)}."
        f"{_saved(tuning, found.saved)}"
    )


def _saved(tuning: str, saved: Interval | None) -> str:
    if saved is None:
        return ""
    before = TUNINGS[TUNINGS[tuning].before].title
    if saved.holds_zero:
        return f" No difference from *{before}* shows."
    verb = "saves" if saved.mid > 0 else "costs"
    low, mid, high = sorted(abs(100 * one) for one in astuple(saved))
    return f" It {verb} {mid:.1f} % [{low:.1f}, {high:.1f}] of *{before}*."


def _ms(figure: Figure) -> str:
    return _interval(figure.seconds.scaled(1000))


def _interval(found: Interval) -> str:
    low, mid, high = map(_number, astuple(found))
    return f"{mid} [{low}, {high}]"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"  # noqa: PLR2004
