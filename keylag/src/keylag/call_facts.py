"""Facts about where the time of each call goes."""

from collections.abc import Iterator, Mapping
from typing import Final

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
    return [latency, *_facts(call, environment or {})]


def largest_parts(run: Run) -> list[str]:
    """Return a sentence on the largest part of each call that was measured."""
    return [
        f"{call_name(call)}: the largest part is {_largest_part(call)}."
        for call in run["calls"]
        if call["client_seconds"] and call["categories"]
    ]


def _facts(call: Call, environment: Environment) -> list[str]:
    inside, outside = _server_fact(call), [*_outside_facts(call, environment)]
    if _outside_share(call) >= DOMINANT_SHARE:
        return [*outside, inside]
    return [inside, *outside]


def _largest_part(call: Call) -> str:
    category, share = _categories_by_share(call)[0]
    inside = f"{CATEGORY_NAMES[category]}, {_percent(share)} of the server's time"
    outside = _outside_share(call)
    if outside < DOMINANT_SHARE:
        return inside
    return f"outside the workers, {_percent(outside)} of the client's time; {inside}"


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


def _server_fact(call: Call) -> str:
    categories = _categories_by_share(call)
    category, share = categories[0]
    largest = f"{_percent(share)} of the server's time is {CATEGORY_NAMES[category]}"
    operation = _main_operation(call, category)
    return f"{largest}, {operation}{_second_category(categories)}."


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


def _outside_facts(call: Call, environment: Environment) -> Iterator[str]:
    share = _outside_share(call)
    if share < MIN_NAMED_SHARE:
        return
    of_client = f"{_percent(share)} of the client's time"
    if is_queueing(environment):
        users = f"{environment[VIRTUAL_USERS]} virtual users"
        workers = f"{worker_count(environment)} workers"
        yield f"{of_client} is waiting for a free worker ({users}, {workers})."
        return
    server = "the service" if is_service_load(environment) else "Keystone"
    causes = "waiting for a free worker, the network or the client"
    yield f"{of_client} passes outside {server}'s workers: {causes}."


def _outside_share(call: Call) -> float:
    """Return the share of the client's time outside the workers; 0 if unknown."""
    client, wall = call["client_seconds"], call["wall_seconds"]
    if not (client and wall and client["mean"]):
        return 0.0
    return 1 - wall["mean"] / client["mean"]
