"""The pages of what laboratories measured."""

from keylag.lab.accuracy import Figure
from keylag.lab.galera.failures import FAILURES, Outcome
from keylag.lab.galera.measurement import Latencies, Measured, find_median
from keylag.lab.link import Link
from keylag_dev import galera_failures_page, galera_wan_page, link_accuracy_page


def test_page_of_links_names_the_figures_that_are_not_accurate() -> None:
    accurate = [Figure("ping", 0.1, 0.1012, 0.002), Figure("tcp", 0.1, 0.1, 0.002)]
    rate = Figure("rate", 6e6, 5e6, 1.2e5)

    page = link_accuracy_page.render(
        [(Link(0.1), accurate), (Link(0.1), [*accurate, rate])], fastest=123.4e6
    )

    assert "| 100 ms, loss 0%, unlimited | 101.2 | 100.0 | - | yes |" in page
    assert "| 101.2 | 100.0 | 5 | **no** |" in page
    assert "4 of 5 figures are accurate" in page
    assert "carried 123 Mbit/s" in page


def test_page_of_token_calls_has_a_row_for_each_round_trip() -> None:
    calls = {"POST /v3/auth/tokens password": Latencies(9, 1, find_median([0.3] * 9))}
    found = Measured(Link(0.2), calls, 7, 4321.0)

    page = galera_wan_page.render([(True, found), (False, found)])

    figures = "| 200 ms | 300 [300, 300] | - | - | 7 | 4.3 | 1 |"
    assert f"| two {figures}" in page
    assert f"| one {figures}" in page


def test_page_of_failures_says_what_did_not_heal() -> None:
    failure = FAILURES["link"]
    found = Outcome(failure, 50, 4, 12.34, 20.0, 3.21, 10, 0)

    page = galera_failures_page.render([(failure, found), (FAILURES["site"], None)])

    assert "| 4 of 50 | 12.3 | 20.0 | 3.2 | 0 of 10 |" in page
    assert f"{FAILURES['site'].summary} | not healed in 90 s |" in page
