"""What *State* says, asked of promtool."""

import re
from pathlib import Path

import pytest
from promtool_query import check

from keylag_dashboards.promql import expand
from keylag_dashboards.queries.tokens import (
    ANSWERS,
    HEALTHY,
    NO_CALLS,
    SHRINKS,
    SLOW,
    SPENT,
)

CALLS = "keylag:token_calls:rate"
IN_TIME = "keylag:token_calls_in_time:rate"
NOT_IN_TIME = "keylag:token_calls_not_in_time:ratio_rate"
LABELS = '{cluster="a", region="r", job="k", host_name="h", http_request_method="GET"}'
FAST = {NOT_IN_TIME + window: 0.0 for window in ("5m", "30m", "1h", "6h")}
SOME_SLOW = {NOT_IN_TIME + window: 0.1 for window in ("5m", "30m", "1h", "6h")}
MANY_SLOW = {NOT_IN_TIME + window: 0.2 for window in ("5m", "30m", "1h", "6h")}
ALL_IN_TIME = {CALLS: 10, IN_TIME: 10}
BELOW_THE_OBJECTIVE = {CALLS: 10, IN_TIME: 9.8}
CASES = {
    "nothing": ({}, NO_CALLS),
    "no calls": ({CALLS: 0, IN_TIME: 0}, NO_CALLS),
    "all in time": (ALL_IN_TIME | FAST, HEALTHY),
    "fast now, not in seven days": (BELOW_THE_OBJECTIVE | FAST, SPENT),
    "one in ten is slow": (BELOW_THE_OBJECTIVE | SOME_SLOW, SHRINKS),
    "one in five is slow": (BELOW_THE_OBJECTIVE | MANY_SLOW, SLOW),
}


@pytest.mark.parametrize("case", CASES)
def test_state(case: str, tmp_path: Path) -> None:
    series, state = CASES[case]
    query = re.sub(r"\$\w+", ".*", expand(ANSWERS["state"]))
    labelled = {name + LABELS: value for name, value in series.items()}

    check(query, labelled, {"{}": state}, tmp_path)
