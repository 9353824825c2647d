"""What a report says of an arm that has no verdict."""

import pytest

from keylag.experiment.analysis import Comparison, RequestCounts
from keylag.experiment.arm_pair import Difference
from keylag.experiment.interval import Interval
from keylag.experiment.messages import headline
from keylag.experiment.plan import Decision
from keylag.experiment.verdicts import CANNOT_TELL, NO_DIFFERENCE

CHANCE = "Of several arms, one may differ by so much by chance."


def say(measure: str, low: float, high: float, verdict: str = CANNOT_TELL) -> str:
    """Return the sentences on an arm with this relative interval, in per cent."""
    relative = Interval(low / 100, (low + high) / 200, high / 100)
    found = Difference(
        name=measure,
        base=1.0,
        arm=1.0,
        absolute=relative,
        relative=relative,
        differs=False,
        verdict=verdict,
        rounds_needed=None,
    )
    compared = Comparison(
        arm="b",
        method="GET",
        rounds=9,
        sound=True,
        has_parts={},
        measures={measure: found},
        parts={},
        counts={},
        control=None,
    )
    decision = Decision(method="GET", measure=measure, smallest=0.05)
    return headline(compared, "a", decision, RequestCounts(requests=90, failed=0))


@pytest.mark.parametrize(
    ("measure", "low", "high", "certain"),
    [
        ("mean", -5.9, 4.0, "It is not slower by 5 % or more."),
        ("mean", -4.0, 6.4, "It is not faster by 5 % or more."),
        ("throughput", -2.3, 6.4, "It is not slower by 5 % or more."),
        ("throughput", -6.4, 2.3, "It is not faster by 5 % or more."),
    ],
)
def test_undecided_arm_has_what_its_interval_rules_out(
    measure: str, low: float, high: float, certain: str
) -> None:
    text = say(measure, low, high)

    assert text.endswith(f"9 rounds. {certain}")
    assert CHANCE not in text


def test_interval_without_zero_is_no_verdict_because_of_the_other_arms() -> None:
    assert say("mean", -5.9, -0.6).endswith(
        f"9 rounds. {CHANCE} It is not slower by 5 % or more."
    )
    assert say("mean", -9.0, -5.5).endswith("It is not slower by 5 % or more.")


def test_wide_interval_and_a_verdict_need_no_more_words() -> None:
    assert say("mean", -9.0, 9.0).endswith("9 rounds.")
    assert say("mean", -1.0, 1.0, NO_DIFFERENCE).endswith("9 rounds.")
