"""The simulation of whole experiments, with few of them."""

from simulate import CASES, RESTART_SPREAD, claims_difference, verdict_shares

FEW = 40
CASE = {case.name: case for case in CASES}


def wrong(name: str) -> float:
    """Return the share that claims a difference."""
    found = verdict_shares(CASE[name], RESTART_SPREAD["usual"], FEW)
    return sum(
        share
        for verdict_text, share in found.items()
        if claims_difference(verdict_text)
    )


def test_nothing_planted_is_seldom_found() -> None:
    """At most the stated 5 %, and what chance makes of it in few experiments."""
    assert wrong("A/A") <= 0.1


def test_what_is_planted_is_found() -> None:
    """5 % nearly always, and never as the opposite."""
    found = verdict_shares(CASE["planted 5 %"], RESTART_SPREAD["usual"], FEW)

    assert found["slower"] >= 0.8
    assert "faster" not in found
