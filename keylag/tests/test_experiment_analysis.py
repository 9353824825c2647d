"""Comparisons of arms from samples: differences, shares and verdicts."""

from collections.abc import Sequence
from dataclasses import replace
from math import expm1, fsum, inf, log
from statistics import fmean

import pytest
from fake_experiment import fake_rows
from pydantic import ValidationError

from keylag.experiment.analysis import (
    ALPHA,
    Comparison,
    RequestCounts,
    compare_arms,
    count_requests,
    figures_by_arm,
)
from keylag.experiment.arm_pair import Difference
from keylag.experiment.estimates import estimate_mean
from keylag.experiment.interval import Interval
from keylag.experiment.measures import MEASURES, PARTS, measure_round
from keylag.experiment.messages import describe_control, headline
from keylag.experiment.plan import Decision
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.report import format_figure
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    CONTROL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
)
from keylag.server_timing import COUNTS

DECISION = Decision(method="GET")
PLANNED = 20
LOOKS = PlannedLooks(PLANNED, ALPHA)


def sent_rows(number: int, arm: str, **other: object) -> list[Row]:
    """Return the requests of an arm in a round, with the fields `other` replaced."""
    this_round = Round(number, ["a", "b", "c"], 1)
    return [replace(row, **other) for row in fake_rows(this_round, arm)]


def rows_of_two_arms(rounds: int, **other: object) -> list[Row]:
    """Return the requests of arms a and b in so many rounds."""
    return [
        row for n in range(rounds) for arm in "ab" for row in sent_rows(n, arm, **other)
    ]


def test_equal_rounded_latencies_get_no_verdict() -> None:
    """1 ms in every request may be 0.6 ms in one arm and 1.4 ms in the other."""
    found = compare_arms(
        rows_of_two_arms(20, latency_seconds=0.001), "a", ["b"], DECISION, LOOKS
    )[0]

    assert {found.measures[name].verdict for name in ("p50", "p95", "mean")} == {
        CANNOT_TELL
    }
    assert found.measures["p50"].relative == Interval(-1.0, 0.0, inf)
    assert found.measures["p50"].rounds_needed is None
    assert found.counts["sql_statements"].verdict == NO_DIFFERENCE


def test_absent_part_is_no_difference_and_equal_part_is_undecided() -> None:
    """Equal non-zero values are equal only by rounding."""
    parts = compare_arms(rows_of_two_arms(8), "a", ["b"], DECISION, LOOKS)[0].parts

    assert parts["password_hash"].verdict == NO_DIFFERENCE
    assert parts["cache"].verdict == CANNOT_TELL
    assert parts["cache"].absolute == Interval(-0.005, 0.0, inf)


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_four_rounds_give_no_verdict(rounds: int) -> None:
    found = compare_arms(rows_of_two_arms(rounds), "a", ["b"], DECISION, LOOKS)[0]
    figures = [*found.measures.values(), *found.parts.values(), *found.counts.values()]

    assert found.rounds == rounds
    assert len(figures) == len(MEASURES) + len(PARTS) + len(COUNTS)
    assert {one.verdict for one in figures} == {CANNOT_TELL}


def test_failed_share_is_judged_per_method() -> None:
    """1 % of all requests failed, but 10 % of the GET requests."""
    this_round = Round(0, ["a", "b", "c"], 1)
    good = [row for n in range(8) for row in sent_rows(n, "b", method="POST")] * 12
    bad = [
        row for n in range(8) for row in fake_rows(replace(this_round, number=n), "b")
    ]
    failed = [
        replace(row, success=i % 10 != 0, code="200") for i, row in enumerate(bad)
    ]
    base = [
        r
        for n in range(8)
        for m in ("GET", "POST")
        for r in sent_rows(n, "a", method=m)
    ]

    found = compare_arms([*base, *failed, *good], "a", ["b"], DECISION, LOOKS)

    assert {one.method: one.sound for one in found} == {"GET": False, "POST": True}


@pytest.mark.parametrize(
    ("requests", "failed", "expected"),
    [(0, 0, False), (100, 1, True), (100, 2, False), (199, 2, False), (200, 2, True)],
)
def test_counts_are_sound_up_to_one_percent_failed(
    requests: int, failed: int, *, expected: bool
) -> None:
    assert RequestCounts(requests, failed).is_sound is expected


def test_missing_arm_or_base_gives_an_empty_comparison() -> None:
    only = [row for row in rows_of_two_arms(8) if row.arm == "b"]

    for base, arm in (("a", "b"), ("b", "a")):
        found = compare_arms(only, base, [arm], DECISION, LOOKS)[0]
        assert (found.rounds, found.sound, found.measures) == (0, False, {})
        assert found.parts == found.counts == {}


def test_only_rounds_with_both_arms_are_paired() -> None:
    some = [
        row
        for row in rows_of_two_arms(10)
        if not (
            (row.arm == "a" and row.round < 2) or (row.arm == "b" and row.round == 9)
        )
    ]
    found = compare_arms(some, "a", ["b"], DECISION, LOOKS)[0]
    arms = figures_by_arm(some, "GET")

    assert found.rounds == 7
    values = [log(arms["b"][n]["mean"] / arms["a"][n]["mean"]) for n in range(2, 9)]
    expected = LOOKS.interval(estimate_mean(values)).mapped(expm1)
    assert found.measures["mean"].relative.low == pytest.approx(expected.low)
    assert found.measures["mean"].base == fmean(
        arms["a"][n]["mean"] for n in range(2, 9)
    )


def rows_with_noise(milliseconds: Sequence[float], slower: float) -> list[Row]:
    """Return rounds in which b is slower than a, by noise and by a share."""
    return [
        replace(row, arm=arm, latency_seconds=latency, server_timing={})
        for n, noise in enumerate(milliseconds)
        for arm, latency in (
            ("a", 0.1),
            ("b", (0.1 + noise / 1000) * (1 + slower)),
        )
        for row in sent_rows(n, "a")
    ]


def test_arms_share_the_error_of_claims_but_not_of_no_difference() -> None:
    noise = [-1, 1, 0.5, -0.5, 1, -1]
    slower, equal = rows_with_noise(noise, 0.015), rows_with_noise(noise, 0.0)

    def verdicts(rows: Sequence[Row], arms: Sequence[str]) -> set[str]:
        decision = Decision(method="GET", measure="mean")
        found = compare_arms(rows, "a", arms, decision, PlannedLooks(6, ALPHA))[
            0
        ].measures["mean"]
        return {found.verdict}

    assert verdicts(slower, ["b"]) == {SLOWER}
    assert verdicts(slower, [*"bcdefghi"]) == {CANNOT_TELL}
    assert verdicts(equal, ["b"]) == verdicts(equal, [*"bcdefghi"]) == {NO_DIFFERENCE}


def test_no_interval_says_that_an_arm_takes_less_than_no_time() -> None:
    noise = [-90, 90, -50, 50, -80]
    found = compare_arms(
        rows_with_noise(noise, 0.0), "a", ["b"], DECISION, PlannedLooks(5, ALPHA)
    )[0]

    for one in found.measures.values():
        assert one.relative.low > -1
        assert one.absolute.low > -one.base


def rows_with_hash(shares: Sequence[float], arm_shares: Sequence[float]) -> list[Row]:
    """Return rounds in which b's cache saves 5 ms, and hashes take so many seconds."""
    return [
        replace(
            row,
            arm=arm,
            latency_seconds=hashing + cache,
            server_timing=row.server_timing
            | {"sql": 0.0, "cache": cache, "password_hash": hashing},
        )
        for n, hashes in enumerate(zip(shares, arm_shares, strict=True))
        for arm, hashing, cache in zip(
            "ab", hashes, (0.1, 0.095 + n % 3 / 1e4), strict=True
        )
        for row in sent_rows(n, "a")
    ]


HASHES = [0.1, 0.14, 0.12, 0.1, 0.13, 0.1, 0.12, 0.11]
OTHER_HASHES = [0.12, 0.1, 0.11, 0.13, 0.12, 0.11, 0.1, 0.13]


def test_control_takes_the_noise_of_the_machine_out_of_differences() -> None:
    """The hash varies by a third; without it, 5 of 215 ms drown."""
    rows = rows_with_hash(HASHES, OTHER_HASHES)
    plain, controlled = (
        compare_arms(rows, "a", ["b"], replace_control(name), PlannedLooks(8, ALPHA))[0]
        for name in ("", "password_hash")
    )
    parts, plain_mean = controlled.parts, plain.measures["mean"].relative

    assert plain.measures["mean"].verdict == CANNOT_TELL
    assert controlled.measures["mean"].verdict == FASTER
    assert plain.control is None
    assert describe_control(plain.control, "b") == ""
    assert "Control: password hash, which no arm changes" in (
        describe_control(controlled.control, "b")
    )
    assert controlled.control.explained > 0.9
    assert controlled.control.unadjusted.mid == pytest.approx(plain_mean.mid)
    assert f"unadjusted, the mean differs by {100 * plain_mean.mid:+.1f} % [" in (
        describe_control(controlled.control, "b")
    )
    assert (parts["password_hash"].verdict, parts["cache"].verdict) == (CONTROL, FASTER)
    assert fsum(part.absolute.mid for part in parts.values()) == pytest.approx(
        controlled.measures["mean"].absolute.mid
    )


def test_plan_may_decide_by_a_part_of_the_mean() -> None:
    """The noise of the hash, a third of the mean, is not in the part."""
    rows = rows_with_hash(HASHES, OTHER_HASHES)
    decision = Decision(method="GET", measure="cache", smallest=0.02)
    [found] = compare_arms(rows, "a", ["b"], decision, PlannedLooks(8, ALPHA))
    deciding = found.measures["cache"]

    assert found.measures["mean"].verdict == CANNOT_TELL
    assert deciding.verdict == FASTER
    assert deciding.relative == found.parts["cache"].relative
    assert format_figure("cache", deciding.base) == "100.00"
    assert headline(found, "a", decision, RequestCounts(8, 0)).startswith(
        "b: faster than a. GET, cache in the mean: -2.3 % ["
    )


def test_part_is_judged_by_itself_if_the_plan_decides_by_it() -> None:
    """The other parts of the mean share the error probability."""
    rows = rows_with_hash(HASHES, [0.03 + hashing for hashing in OTHER_HASHES])
    decision = Decision(method="GET", measure="password_hash", smallest=0.02)
    [found] = compare_arms(rows, "a", ["b"], decision, PlannedLooks(8, ALPHA))
    alone, shared = found.measures["password_hash"], found.parts["password_hash"]

    assert alone.absolute == shared.absolute
    assert (alone.verdict, shared.verdict) == (SLOWER, CANNOT_TELL)


def test_part_without_server_timing_has_no_verdict_and_a_reason() -> None:
    rows = [
        replace(row, server_timing={}) if row.arm == "b" else row
        for row in rows_with_hash(HASHES, OTHER_HASHES)
    ]
    decision = Decision(method="GET", measure="sql")
    [found] = compare_arms(rows, "a", ["b"], decision, PlannedLooks(8, ALPHA))

    assert "sql" not in found.measures
    assert "responses of b lack the Server-Timing header" in (
        headline(found, "a", decision, RequestCounts(8, 0))
    )


def test_every_measure_and_part_may_decide() -> None:
    for name in (*MEASURES, *PARTS):
        assert Decision(method="GET", measure=name).measure == name
    with pytest.raises(ValidationError, match=r"choose one of p50, .* outside"):
        Decision(method="GET", measure="sql_statements")


def replace_control(name: str) -> Decision:
    """Return a decision on the mean with a control."""
    return Decision(method="GET", measure="mean", control=name)


def test_control_that_an_arm_changes_is_not_used() -> None:
    slower = [0.05 + hashing for hashing in OTHER_HASHES]
    rows = rows_with_hash(HASHES, slower)
    found = compare_arms(
        rows, "a", ["b"], replace_control("password_hash"), PlannedLooks(8, ALPHA)
    )[0]

    assert not found.control.is_used
    assert "password hash, is not used: with b it changes the mean by +2" in (
        describe_control(found.control, "b")
    )
    assert found.parts["password_hash"].verdict == SLOWER
    assert found.measures["mean"].absolute.mid > 0.03


def test_control_that_a_method_does_not_have_is_left_out() -> None:
    rows = rows_of_two_arms(8)
    [found] = compare_arms(
        rows, "a", ["b"], replace_control("token_crypto"), PlannedLooks(8, ALPHA)
    )

    assert found.control is None
    assert found.parts["token_crypto"].verdict == NO_DIFFERENCE


def test_control_without_server_timing_is_left_out() -> None:
    rows = rows_with_noise([-1, 1, 0, 1, -1], 0.0)

    [found] = compare_arms(
        rows, "a", ["b"], replace_control("password_hash"), PlannedLooks(5, ALPHA)
    )
    assert found.control is None
    assert found.measures["mean"].verdict == NO_DIFFERENCE


def test_round_without_time_under_load_has_no_figures() -> None:
    few = sent_rows(0, "a", server_timing={})

    assert measure_round(few, 0.0) is None
    assert measure_round(few, 0.1) is not None


def compare_one(**other: object) -> Comparison:
    """Compare b with a over eight rounds, with fields of b's requests replaced."""
    base = [row for n in range(8) for row in sent_rows(n, "a")]
    arm = [row for n in range(8) for row in sent_rows(n, "b", **other)]
    [found] = compare_arms([*base, *arm], "a", ["b"], DECISION, LOOKS)
    return found


def test_relative_difference_is_a_share_of_the_base() -> None:
    """For a measure of the base's own figure, for a part of the base's mean."""
    found = compare_one()
    arms = figures_by_arm(rows_of_two_arms(8), "GET")
    base, arm = (
        {
            name: fmean(one[name] for one in arms[which].values())
            for name in ("p95", "sql", "mean")
        }
        for which in "ab"
    )
    for whole, one in (("p95", found.measures["p95"]), ("mean", found.parts["sql"])):
        assert (one.base, one.arm) == (base[one.name], arm[one.name])
        assert one.absolute.mid == pytest.approx(arm[one.name] - base[one.name], 0.01)
        assert one.relative == one.absolute.scaled(1 / base[whole])
    assert (found.arm, found.method, found.rounds, found.sound) == ("b", "GET", 8, True)


def test_differences_carry_the_name_of_their_key() -> None:
    found = compare_one()

    for kind in (found.measures, found.parts, found.counts):
        assert [one.name for one in kind.values()] == list(kind)


def test_higher_throughput_and_shorter_latency_are_faster() -> None:
    """Arm b takes ten milliseconds less."""
    faster = compare_one().measures
    slower = compare_arms(rows_of_two_arms(8), "b", ["a"], DECISION, LOOKS)[0].measures

    assert {one.verdict for one in faster.values()} == {FASTER}
    assert {one.verdict for one in slower.values()} == {SLOWER}
    assert faster["throughput"].absolute.low > 0 > faster["p50"].absolute.high


def test_smallest_effect_of_a_part_is_a_share_of_the_mean() -> None:
    """5 ms less cache exceed 2 % of a request of 100 ms; 1 ms less does not."""

    def cached(seconds: float) -> Difference:
        other = [
            replace(
                row,
                server_timing=row.server_timing | {"cache": seconds + row.round / 1e6},
            )
            for n in range(20)
            for row in sent_rows(n, "b")
        ]
        base = [row for n in range(20) for row in sent_rows(n, "a")]
        [found] = compare_arms([*base, *other], "a", ["b"], DECISION, LOOKS)
        return found.parts["cache"]

    assert cached(0.0).verdict == FASTER
    assert cached(0.004).verdict == NO_DIFFERENCE


def test_count_that_is_zero_in_the_base_has_no_relative_difference() -> None:
    none = {"sql_statements": 0.0}
    base = [
        replace(row, server_timing=row.server_timing | none)
        for n in range(8)
        for row in sent_rows(n, "a")
    ]
    arm = [row for n in range(8) for row in sent_rows(n, "b")]
    [found] = compare_arms([*base, *arm], "a", ["b"], DECISION, LOOKS)

    assert found.counts["sql_statements"].relative is None
    assert found.counts["sql_statements"].verdict == SLOWER
    assert found.counts["cache_calls"].relative == Interval(0.0, 0.0, 0.0)


def test_no_interval_says_that_an_arm_has_less_than_no_statements() -> None:
    statements = {"a": (1.0, 40.0), "b": (0.0, 1.0)}
    rows = [
        replace(
            row,
            server_timing=row.server_timing | {"sql_statements": values[n % 2]},
        )
        for arm, values in statements.items()
        for n in range(8)
        for row in sent_rows(n, arm)
    ]
    [found] = compare_arms(rows, "a", ["b"], DECISION, LOOKS)

    relative = found.counts["sql_statements"].relative
    assert relative is not None
    assert relative.low == -1.0
    assert relative.high > 0


def test_arm_with_many_failures_has_figures_but_no_verdict() -> None:
    failed = [
        replace(row, success=row.start_seconds != 1001.0, code="503")
        for n in range(8)
        for row in sent_rows(n, "b")
    ]
    base = [row for n in range(8) for row in sent_rows(n, "a")]
    [found] = compare_arms([*base, *failed], "a", ["b"], DECISION, LOOKS)

    assert not found.sound
    assert {one.verdict for one in found.measures.values()} == {CANNOT_TELL}
    assert {one.rounds_needed for one in found.measures.values()} == {None}
    assert found.measures["p50"].absolute.high < 0
    assert figures_by_arm(failed, "GET")["b"].keys() == set(range(8))


def test_rounds_needed_are_those_of_a_run_that_goes_on_alike() -> None:
    """With so many rounds there is a verdict, and with one less there is none."""
    noise = [-3, 3, 1, -1, 2]

    def compare(times: int) -> Difference:
        rows = rows_with_noise(noise * times, 0.0)
        return compare_arms(rows, "a", ["b"], DECISION, LOOKS)[0].measures["mean"]

    first = compare(1)
    assert first.verdict == CANNOT_TELL
    assert first.rounds_needed in range(10, PLANNED + 100)
    again = first.rounds_needed // 5
    assert compare(again + 2).verdict == NO_DIFFERENCE
    assert compare(again - 2).verdict == CANNOT_TELL


def test_requests_are_counted_by_arm_and_status_code_without_warm_up() -> None:
    some = [*sent_rows(0, "a"), *sent_rows(1, "a", success=False, code="503")]
    found = count_requests([*some, *sent_rows(0, "b", success=False, code="401")])

    assert found == {
        "a": RequestCounts(20, 10, {"503": 10}, broken_down=10),
        "b": RequestCounts(10, 10, {"401": 10}),
    }


def test_figures_use_successful_requests_of_one_method() -> None:
    good = sent_rows(0, "a")
    other = sent_rows(0, "a", method="POST", latency_seconds=9.0)
    failed = sent_rows(0, "a", success=False, latency_seconds=9.0)
    found = figures_by_arm([*good, *other, *failed], "GET")["a"][0]

    assert found["mean"] == figures_by_arm(good, "GET")["a"][0]["mean"]
