"""Find arms with more or fewer busy clients than the base.

At the end of a slice all clients wait, so that no request reaches into the next one.
While the last answers of the slice arrive, fewer clients share a Keystone, which makes
each request faster.  That takes longer if the requests of an arm differ more.
"""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Final

from keylag.experiment.arm_pair import FiguresByRound
from keylag.experiment.plan import Plan
from keylag.experiment.saturation import count_clients

SHARE_OF_SMALLEST: Final = 0.5
"""A load that differs by more, as a share of what matters, may turn a verdict."""


def find_idle_clients(
    plan: Plan, figures: Mapping[str, FiguresByRound]
) -> Iterator[str]:
    """Yield a sentence for each arm whose requests share Keystone with more or fewer.

    Only a load with one HTTP method keeps all its clients in the figures of one method.
    """
    base = _busy_clients(figures.get(plan.base, {}))
    for arm in plan.other_arms:
        busy, clients = _busy_clients(figures.get(arm, {})), count_clients(plan, arm)
        if clients < 2 or not busy or not base:  # noqa: PLR2004 - one shares nothing
            continue
        if abs(busy / base - 1) > SHARE_OF_SMALLEST * plan.decision.smallest:
            yield (
                f"Of {clients} clients, {base:.2f} were busy at a time with {plan.base}"
                f" and {busy:.2f} with {arm}. Fewer busy clients make each request "
                "faster, and fewer are answered in a second, so the difference may "
                "come from the load. Set a longer `slice_seconds` in the plan."
            )


def _busy_clients(rounds: FiguresByRound) -> float:
    # Little's law: requests under way are their rate times their mean duration.
    busy = [one["throughput"] * one["mean"] for one in rounds.values()]
    return fmean(busy) if busy else 0.0
