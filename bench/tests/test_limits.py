"""The least time of token calls: figures, order, tables and page."""

import json
import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from keylag.experiment.plan_parser import read_plan
from keylag.paths import CHECKOUT
from keylag.phases import CATEGORIES
from keylag_bench.limits.client import Sample
from keylag_bench.limits.figures import Figures, analyse, middle_mean
from keylag_bench.limits.page import BLOCK, insert, to_json, to_markdown
from keylag_bench.limits.schedule import (
    WARM_UP_TURNS,
    Restart,
    Size,
    measure,
    runs_in_turn,
)
from keylag_bench.limits.servers import PART, Key, Take, arm_of, plan
from keylag_bench.limits.tables import CALLS, HASHES, OUTSIDE, PARTS, REFERENCE, TUNINGS

MS = 0.001
PART_MS = {
    "framework": 2.0,
    "hash_default": 200.0,
    "hash_least": 0.5,
    "encrypt": 0.25,
    "cache": 0.5,
    "user": 1.0,
    "render": 0.5,
}
LEAST_MS = {"GET": 3.0, "POST": 204.25, "POST-least": 4.75}
CALL_MS = {"default": 60.0, "now": 8.0, "best": 6.0, "nocatalog": 6.0, "patched": 7.0}
FACTS = {
    "size": Size(4, 2, 1),
    "seconds": 600.0,
    "load_before": 0.25,
    "statements": ["SELECT 1", "SELECT 2"],
    "cached_bytes": 1234,
}


def part_samples(name: str) -> list[Sample]:
    """Return two equal runs of a part; that of the framework is outside by half."""
    seconds = PART_MS.get(name, 1.0) * MS
    if name == "framework":
        return 2 * [Sample({"other": seconds / 2, OUTSIDE: seconds / 2})]
    return 2 * [Sample({PARTS[name].category: seconds})]


def call_samples(tuning: str, call: str, speed: float) -> list[Sample]:
    """Return two equal calls, whose time above the least is cache."""
    counts = {"sql_statements": 4.0, "cache_calls": 14.0}
    above = (CALL_MS[tuning] * speed - LEAST_MS[call]) * MS
    return 2 * [Sample({"other": LEAST_MS[call] * MS, "cache": above}, counts)]


def restart(speed: float = 1.0) -> Restart:
    """Return the samples of a restart in which all calls take `speed` times as long."""
    return {
        **{(PART, name): part_samples(name) for name in PARTS},
        **{
            (tuning, call): call_samples(tuning, call, speed)
            for tuning in TUNINGS
            for call in CALLS
        },
    }


@pytest.fixture
def figures() -> Figures:
    """The figures of four restarts that differ by some per cent."""
    return analyse([restart(speed) for speed in (0.98, 1.0, 1.01, 1.01)])


def test_least_time_is_the_sum_of_the_parts_of_the_call(figures: Figures) -> None:
    for call, ms in LEAST_MS.items():
        assert figures.least[call].seconds.mid == pytest.approx(ms * MS)
    assert figures.least["GET"].places["cache"] == pytest.approx(0.5 * MS)
    assert figures.least["GET"].places[OUTSIDE] == pytest.approx(1.0 * MS)


def test_calls_are_compared_with_the_least_and_with_the_tuning_before(
    figures: Figures,
) -> None:
    now, best = figures.calls["GET"]["now"], figures.calls["GET"]["best"]

    assert now.ratio.mid == pytest.approx(8 / 3, rel=0.001)
    assert now.ratio.low < 8 / 3 < now.ratio.high
    assert now.above["cache"] == pytest.approx(4.5 * MS)
    assert sum(now.above.values()) == pytest.approx(5.0 * MS)
    assert best.saved is not None
    assert best.saved.mid == pytest.approx(0.25)
    assert figures.calls["GET"]["default"].saved is None
    assert now.counts == {"sql_statements": 4.0, "cache_calls": 14.0}


def test_places_add_up_to_the_estimate(figures: Figures) -> None:
    for found in figures.calls["POST"].values():
        assert sum(found.places.values()) == pytest.approx(found.seconds.mid)


def test_middle_mean_ignores_a_quarter_on_each_side() -> None:
    seconds = [1.0, 2.0, 4.0, 1000.0]
    samples = [Sample({"sql": one, "cache": 1.0}) for one in seconds]

    found = middle_mean(samples)

    assert found.seconds == {"sql": 3.0, "cache": 1.0}
    assert middle_mean(samples[:1]).seconds == samples[0].seconds


def test_each_part_and_call_has_a_turn_in_each_round() -> None:
    turns: list[Key] = []
    numbers: list[int] = []

    @contextmanager
    def restarted(number: int, seed: int) -> Iterator[Mapping[Key, Take]]:
        assert seed > 0
        numbers.append(number)

        def take_from(key: Key) -> Take:
            def take(runs: int) -> list[Sample]:
                turns.append(key)
                return runs * [Sample({"sql": 1.0})]

            return take

        yield {key: take_from(key) for key in restart()}

    restarts = measure(Size(2, 3, 1), restarted, lambda _: None)

    assert numbers == [0, 1]
    assert {turns.count(key) for key in restart()} == {2 * (WARM_UP_TURNS + 3)}
    for found in restarts:
        assert {key: len(found[key]) for key in restart()} == {
            key: 3 * runs_in_turn(key) for key in restart()
        }
    first, second = turns[: len(restart())], turns[len(restart()) : 2 * len(restart())]
    assert sorted(first) == sorted(second)
    assert first != second


def test_tables_name_only_what_exists() -> None:
    for call in CALLS.values():
        assert set(call.parts) <= set(PARTS)
        assert call.hash in HASHES
    assert {part.category for part in PARTS.values()} <= set(CATEGORIES)
    names = list(TUNINGS)
    for number, tuning in enumerate(TUNINGS.values()):
        assert tuning.before in (names[:number] or [""])
    fixes = runpy.run_path(str(CHECKOUT / "docs" / "upstream" / "run.py"))["FIXES"]
    used = TUNINGS["patched"].arm.environment["UPSTREAM_FIX"].split(",")
    # It matters to a Galera cluster only.
    assert set(used) == set(fixes) - {"last-active-retry"}


def test_a_tuning_with_patches_keeps_the_settings_of_the_one_before() -> None:
    patched = TUNINGS["patched"]

    assert patched.arm.cache == TUNINGS[patched.before].arm.cache


def test_each_setting_has_an_experiment_and_a_risk() -> None:
    tuned = [one for tuning in TUNINGS.values() for one in tuning.settings]
    needed = [one for call in CALLS.values() for one in call.settings]
    for setting in (*tuned, *needed):
        assert setting.experiments
        assert setting.risk.endswith(".")
        for name in setting.experiments:
            read_plan(CHECKOUT / "experiments" / f"{name}.toml")


def test_tunings_with_equal_servers_share_a_stack() -> None:
    arms = plan()

    assert arms.arm_names == ["default", "now", "best", "patched"]
    assert arm_of("nocatalog") == "best"
    assert arms.resolved_arm(REFERENCE).processes == 1


def test_page_has_a_conclusion_for_each_row(figures: Figures) -> None:
    text = to_markdown(figures, FACTS)

    assert "4 restarts with 2 rounds each, 10 minutes" in text
    assert "with 2 statements; a validated token has 1234 bytes" in text
    for tuning in TUNINGS.values():
        assert text.count(f"- **{tuning.title}**: ") == len(CALLS)
    assert "It saves 25.0 % [25.0, 25.0] of *now: memcache_pool, warm*." in text
    assert "No difference from *dogpile.cache.memcached, warm* shows." in text
    assert "It costs 16.7 %" in text
    assert "Above it are 5 ms: cache 4.5, " in text
    assert "- **The least**, in ms: framework 2, cache 0.5, " in text
    widths = [
        {line.count("|") for line in table.splitlines()}
        for table in text.split("\n\n")
        if table.startswith("|")
    ]
    assert all(len(found) == 1 for found in widths)


def test_page_keeps_what_is_written_by_hand(figures: Figures) -> None:
    page = (CHECKOUT / "docs" / "limits.md").read_text(encoding="utf-8")
    found = BLOCK.search(page)
    assert found

    once = insert(page, figures, FACTS)

    assert once.startswith(page[: found.start()])
    assert once.endswith(page[found.end() :])
    assert "### GET, a validation" in once
    assert insert(once, figures, FACTS) == once


def test_json_has_intervals_as_lists_and_null_for_infinite_ends() -> None:
    found = json.loads(to_json(analyse([restart()]), FACTS))

    assert found["facts"]["size"] == {"restarts": 4, "rounds": 2, "seed": 1}
    assert found["parts"]["cache"]["seconds"] == [None, pytest.approx(0.0005), None]
    assert found["calls"]["GET"]["default"]["saved"] is None
