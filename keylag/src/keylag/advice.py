"""Facts about where the time of each call goes, and options that may reduce it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from keylag.advice_options import OUTSIDE, QUEUE, find_options
from keylag.breakdown import Call, Run
from keylag.phases import CATEGORY_NAMES, OPERATIONS, Cell, category_of
from keylag.run_environment import (
    VIRTUAL_USERS,
    Environment,
    is_queueing,
    is_service_load,
    worker_count,
)

MIN_NAMED_SHARE: Final = 0.15
"""Smallest share for which a second category, or time outside Keystone, is named."""
DOMINANT_SHARE: Final = 0.5
"""Smallest share of the client's time for which time outside Keystone comes first."""

Finding = tuple[str, str]
"""Where time goes, as `keylag.advice_options` calls it, and a sentence about it."""

_OPERATION_NAMES: Final[Mapping[str, str]] = {"other": "outside the named steps"}


def call_facts(call: Call, environment: Environment | None = None) -> list[str]:
    """Return sentences on where the time of a call goes, the largest part first.

    `environment` holds what is known of the run; see `keylag.run_environment`.
    """
    client = call["client_seconds"]
    if client is None:
        return [f"{call_name(call)}: none of {call['requests']} requests succeeded."]
    latency = (
        f"{call_name(call)} takes {format_duration(client['mean'])} at the client."
    )
    if not call["categories"]:
        return [latency, "Keystone sent no Server-Timing, so there is no breakdown."]
    return [latency, *(fact for _, fact in _findings(call, environment or {}))]


def call_options(call: Call, environment: Environment | None = None) -> list[str]:
    """Return the options that may help, in the order of the facts."""
    environment = environment or {}
    return [
        option
        for place, _ in _findings(call, environment)
        for option in find_options(place, environment)
    ]


def _findings(call: Call, environment: Environment) -> list[Finding]:
    if not (call["client_seconds"] and call["categories"]):
        return []
    inside, outside = _server_finding(call), [*_outside_findings(call, environment)]
    if _outside_share(call) >= DOMINANT_SHARE:
        return [*outside, inside]
    return [inside, *outside]


def conclusions(runs: Sequence[Run]) -> list[str]:
    """Return a line for each call with its largest category in each run."""
    by_call: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for call in run["calls"]:
            for category, share in _categories_by_share(call)[:1]:
                largest = f"{CATEGORY_NAMES[category]} {_percent(share)}"
                by_call[call_name(call)].append(
                    f"{_outside_prefix(call)}{largest} ({run['name']})"
                )
    if not by_call:
        return ["No call was measured, so there is no breakdown."]
    return [f"{name}: {', '.join(parts)}" for name, parts in by_call.items()]


def call_name(call: Call) -> str:
    """Return method, route and authentication method of a call."""
    how = f" ({call['auth_method']})" if call["auth_method"] else ""
    return f"{call['method']} {call['route']}{how}"


def format_duration(seconds: float) -> str:
    """Format a duration in milliseconds with three significant digits."""
    value = seconds * 1000
    digits = next((n for n, edge in enumerate((100, 10)) if value >= edge), 2)
    return f"{value:.{digits}f} ms"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _categories_by_share(call: Call) -> list[tuple[str, float]]:
    pairs = ((name, numbers["share"]) for name, numbers in call["categories"].items())
    return sorted(pairs, key=lambda pair: -pair[1])


def _server_finding(call: Call) -> Finding:
    categories = _categories_by_share(call)
    category, share = categories[0]
    largest = f"{_percent(share)} of the server's time is {CATEGORY_NAMES[category]}"
    operation = _main_operation(call, category)
    return category, f"{largest}, {operation}{_second_category(categories)}."


def _main_operation(call: Call, category: str) -> str:
    shares: dict[str, float] = dict.fromkeys(OPERATIONS, 0.0)
    for name, numbers in call["cells"].items():
        cell = _parse_cell(name)
        if category_of(cell) == category:
            shares[cell[1]] = shares.get(cell[1], 0.0) + numbers["share"]
    largest = max(shares, key=lambda operation: shares[operation])
    where = f"in {largest}" if _is_concentrated(shares) else f"mostly in {largest}"
    return _OPERATION_NAMES.get(largest, where)


def _is_concentrated(shares: Mapping[str, float]) -> bool:
    return max(shares.values()) >= (1 - MIN_NAMED_SHARE) * sum(shares.values())


def _parse_cell(name: str) -> Cell:
    phase, _, operation = name.partition(".")
    return phase, operation


def _second_category(categories: list[tuple[str, float]]) -> str:
    category, share = categories[1]
    if share < MIN_NAMED_SHARE:
        return ""
    return f", then {CATEGORY_NAMES[category]} with {_percent(share)}"


def _outside_findings(call: Call, environment: Environment) -> Iterator[Finding]:
    share = _outside_share(call)
    if share < MIN_NAMED_SHARE:
        return
    of_client = f"{_percent(share)} of the client's time"
    if is_queueing(environment):
        users = f"{environment[VIRTUAL_USERS]} virtual users"
        workers = f"{worker_count(environment)} workers"
        yield QUEUE, f"{of_client} is waiting for a free worker ({users}, {workers})."
        return
    server = "the service" if is_service_load(environment) else "Keystone"
    causes = "waiting for a free worker, the network or the client"
    yield OUTSIDE, f"{of_client} passes outside {server}'s workers: {causes}."


def _outside_share(call: Call) -> float:
    """Return the share of the client's time outside the workers; 0 if unknown."""
    client, wall = call["client_seconds"], call["wall_seconds"]
    if not (client and wall and client["mean"]):
        return 0.0
    return 1 - wall["mean"] / client["mean"]


def _outside_prefix(call: Call) -> str:
    share = _outside_share(call)
    if share < DOMINANT_SHARE:
        return ""
    return f"outside its workers {_percent(share)}, then "
