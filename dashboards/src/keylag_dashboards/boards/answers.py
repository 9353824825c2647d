"""The row that a manager understands: state, rate, budget, and the widest category."""

from typing import Final

from keylag_dashboards.config import (
    BAD,
    GOOD,
    NEUTRAL,
    OBJECTIVE_SECONDS,
    OBJECTIVE_SHARE,
    WARNING,
)
from keylag_dashboards.model import Panel, State
from keylag_dashboards.queries.tokens import (
    HEALTHY,
    NO_CALLS,
    SHRINKS,
    SLOW,
    SPENT,
)

_STACK: Final = "tokens: Time per call, by category"

ANSWERS: Final = (
    Panel(
        "State",
        f"Of the objective: {OBJECTIVE_SHARE:.0%} of token calls within"
        f" {OBJECTIVE_SECONDS} s and without a 5xx. Slow now: an alert would page you."
        " Budget shrinks: at this rate that of a week is spent in 28 hours."
        " Budget spent: calls are fast enough now, and in the last seven days were"
        " not.",
        "short",
        "stat",
        {"state": "state"},
        width=8,
        height=3,
        states={
            HEALTHY: State("Healthy", GOOD),
            NO_CALLS: State("No calls", NEUTRAL),
            SPENT: State("Budget spent", WARNING),
            SHRINKS: State("Budget shrinks", WARNING),
            SLOW: State("Slow now", BAD),
        },
        explained_by=(_STACK,),
    ),
    Panel(
        "Calls per second now",
        "Token calls per second. Far more than usual: look at who validates.",
        "reqps",
        "stat",
        {"calls": "calls_now"},
        width=8,
        height=3,
        decimals=1,
        explained_by=("services: Validations by user, counted in Keystone",),
    ),
    Panel(
        "Calls in time",
        f"Share of calls within {OBJECTIVE_SECONDS} s and without a 5xx, over the time"
        " shown.",
        "percentunit",
        "stat",
        {"in time": "in_time"},
        width=8,
        height=3,
        decimals=2,
        thresholds={0: BAD, OBJECTIVE_SHARE: GOOD},
        explained_by=("tokens: Latency", "tokens: Refused and failed calls"),
    ),
    Panel(
        "Error budget left",
        "Error budget of the last seven days. 100 %: all calls were in time. 0 %: the"
        " objective is missed.",
        "percentunit",
        "stat",
        {"left": "budget_left"},
        width=8,
        height=3,
        decimals=0,
        thresholds={0: BAD, 0.01: WARNING, 0.5: GOOD},
        explained_by=("tokens: Calls not in time",),
    ),
    Panel(
        "Widest category now",
        "The category with the most time, and its seconds per call, over five minutes."
        " A gain elsewhere is smaller.",
        "s",
        "stat",
        {"{{category}}": "widest"},
        width=8,
        height=3,
        show_name=True,
        explained_by=(_STACK,),
    ),
    Panel(
        "Grew most since yesterday",
        "The category that grew most since this time yesterday, and its additional"
        " seconds per call. It is the first suspect when calls became slow.",
        "s",
        "stat",
        {"{{category}}": "grew_most"},
        width=8,
        height=3,
        show_name=True,
        empty_reason="no category grew, or no data from yesterday",
        explained_by=("tokens: Categories, now and before",),
    ),
)
"""Two lines of panels."""
