"""The simulation of experiments, with few of them."""

from simulate import CASES, RESTART_SPREAD, claims_difference, verdict_shares

FEW = 40
CASE = {case.name: case for case in CASES}


def share_of_claims(name: str) -> float:
    """Return the share of experiments that claim a difference."""
    found = verdict_shares(CASE[name], RESTART_SPREAD["usual"], FEW)
    return sum(
        share
        for verdict_text, share in found.items()
        if claims_difference(verdict_text)
    )


def test_a_a_check_rarely_claims_a_difference() -> None:
    """5 % are allowed; few experiments vary more."""
    assert share_of_claims("A/A") <= 0.1


def test_planted_effect_of_5_percent_is_found_in_the_right_direction() -> None:
    found = verdict_shares(CASE["planted 5 %"], RESTART_SPREAD["usual"], FEW)

    assert found["slower"] >= 0.8
    assert "faster" not in found
