"""Find arms whose workers are saturated: the load asks more than they serve.

Every client of a load waits for its response before it sends the next request.  If
there are more clients than workers, the others wait outside Keystone, and a latency is
mostly the length of that queue.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from keylag import load_plans
from keylag.experiment.arm_pair import FiguresByRound
from keylag.experiment.measures import OUTSIDE
from keylag.experiment.plan import Plan

MAX_WAITING_SHARE: Final = 0.5
"""Of the time of requests that they may wait outside Keystone."""


def find_saturated_arms(
    plan: Plan, figures: Mapping[str, FiguresByRound]
) -> Iterator[str]:
    """Yield a sentence for each saturated arm.

    A plan that decides by requests per second saturates its arms on purpose.
    """
    if plan.decision.saturates:
        return
    for arm, rounds in figures.items():
        clients, workers = count_clients(plan, arm), count_workers(plan, arm)
        waiting = _waiting_share(list(rounds.values()))
        if waiting > MAX_WAITING_SHARE and clients > (workers or 1):
            serves = (
                f"and the arm serves {workers}"
                if workers
                else "more than it serves, or the network takes long"
            )
            yield (
                f"Requests of {arm} wait {waiting:.0%} of their time outside Keystone: "
                f"the load sends {clients} at a time, {serves}. Waiting hides other "
                "differences. Send fewer requests at a time (`threads` of the load), "
                "or give the arm more `processes`."
            )


def count_clients(plan: Plan, arm: str) -> int:
    """Return the number of requests that the load sends at a time."""
    defaults = load_plans.find_plan(plan.load.plan).defaults
    return int({**defaults, **plan.load_properties(arm)}.get("threads", 0))


def count_workers(plan: Plan, arm: str) -> int | None:
    """Return the number of requests that an arm serves at a time; None if unknown."""
    if plan.remote:
        return None
    settings = plan.resolved_arm(arm)
    return settings.processes * settings.threads


def _waiting_share(rounds: Sequence[Mapping[str, float]]) -> float:
    if any(OUTSIDE not in figures for figures in rounds):
        return 0.0
    return fmean(figures[OUTSIDE] / figures["mean"] for figures in rounds)
