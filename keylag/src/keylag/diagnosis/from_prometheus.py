"""Cases of a window that Prometheus knows."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Facts, Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.reading import read_calls, read_facts

DAY_SECONDS: Final = 86400.0
EARLIER: Final = (DAY_SECONDS, 7 * DAY_SECONDS)
"""How long before the window its baseline is; the first with served calls is used."""


def read_case(
    server: Prometheus,
    window: Window,
    matchers: str = "",
    baseline: float | None = None,
) -> Case:
    """Return what is known of a window, and what is expected in it.

    `baseline` is the end of a window of the same length.
    """
    facts = read_facts(server, window, matchers)
    return Case(facts, _expected(server, facts, matchers, baseline))


def _expected(
    server: Prometheus, facts: Facts, matchers: str, baseline: float | None
) -> Expected:
    window = facts.window
    ends = (baseline,) if baseline else [window.end - offset for offset in EARLIER]
    for end in ends:
        before = Window(end - window.seconds, end)
        found = read_calls(server, before, matchers)
        if found.served:
            return Expected.of(found)
    return Expected.shipped(facts)
