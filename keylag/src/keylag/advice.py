"""What a run says, in words: where the time of each call goes, and what may help."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from keylag.breakdown import Call, Run
from keylag.options import (
    OUTSIDE,
    QUEUE,
    VIRTUAL_USERS,
    Environment,
    is_queueing,
    of_a_service,
    options,
    workers,
)
from keylag.phases import CATEGORY_NAMES, OPERATIONS, Cell, category_of

WORTH_NAMING: Final = 0.15
"""A second category, or time outside Keystone, is named from this share on."""
DOMINANT: Final = 0.5
"""Time outside Keystone comes before all else from this share of the client's on."""

Finding = tuple[str, str]
"""Where time goes, as `keylag.options` calls it, and the fact in words."""

_STEPS: Final[Mapping[str, str]] = {"other": "outside the named steps"}


def sentence(call: Call, environment: Environment | None = None) -> str:
    """Say in words where the time of a call goes: facts, what dominates first.

    `environment` is the run's; the more it says, the sharper the facts.
    """
    client = call["client_seconds"]
    if client is None:
        return f"{title(call)}: none of {call['requests']} requests was answered well."
    start = f"{title(call)} takes {milliseconds(client['mean'])} at the client"
    if not call["categories"]:
        return f"{start}; Keystone sent no Server-Timing, so where is not known."
    facts = (fact for _, fact in _findings(call, environment or {}))
    return f"{'; '.join([start, *facts])}.".replace("%", " %")


def may_help(call: Call, environment: Environment | None = None) -> list[str]:
    """Return the options that there are, in the order of those facts."""
    known = environment or {}
    found = _findings(call, known)
    return [text for place, _ in found for text in options(place, known)]


def _findings(call: Call, environment: Environment) -> list[Finding]:
    """Return where the time goes, what dominates first; nothing without parts."""
    if not (call["client_seconds"] and call["categories"]):
        return []
    inside, outside = _inside(call), [*_outside(call, environment)]
    if _share_outside(call) >= DOMINANT:
        return [*outside, inside]
    return [inside, *outside]


def conclusion(runs: Sequence[Run]) -> str:
    """Say in one line where the time of every call goes, in each run."""
    said: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for call in run["calls"]:
            for category, share in _by_share(call)[:1]:
                words = f"{CATEGORY_NAMES[category]} {share:.0%} ({run['name']})"
                said[title(call)].append(f"{_waiting(call)}{words}")
    if not said:
        return "No call was measured, so where the time goes is not known."
    calls = (f"{name}: {', '.join(words)}" for name, words in said.items())
    return f"Where the time goes. {'; '.join(calls)}.".replace("%", " %")


def title(call: Call) -> str:
    """Return the call's name: method, route and how it authenticates."""
    how = f" ({call['auth_method']})" if call["auth_method"] else ""
    return f"{call['method']} {call['route']}{how}"


def milliseconds(seconds: float) -> str:
    """Write a time with three figures that count."""
    value = seconds * 1000
    digits = next((n for n, edge in enumerate((100, 10)) if value >= edge), 2)
    return f"{value:.{digits}f} ms"


def _by_share(call: Call) -> list[tuple[str, float]]:
    pairs = ((name, numbers["share"]) for name, numbers in call["categories"].items())
    return sorted(pairs, key=lambda pair: -pair[1])


def _inside(call: Call) -> Finding:
    """Name the category that has most of the server's time, and the next one."""
    categories = _by_share(call)
    category, share = categories[0]
    most = f"{share:.0%} of the server's time is {CATEGORY_NAMES[category]}"
    return category, f"{most}, {_where(call, category)}{_second(categories)}"


def _where(call: Call, category: str) -> str:
    """Name the operation that has most of the category."""
    shares: dict[str, float] = dict.fromkeys(OPERATIONS, 0.0)
    for name, numbers in call["cells"].items():
        cell = _cell(name)
        if category_of(cell) == category:
            shares[cell[1]] = shares.get(cell[1], 0.0) + numbers["share"]
    step = max(shares, key=lambda operation: shares[operation])
    return _STEPS.get(step, f"in {step}" if _split(shares) else f"mostly in {step}")


def _split(shares: Mapping[str, float]) -> bool:
    """Tell whether one step has it nearly all."""
    whole = sum(shares.values())
    return max(shares.values()) >= (1 - WORTH_NAMING) * whole


def _cell(name: str) -> Cell:
    phase, _, operation = name.partition(".")
    return phase, operation


def _second(categories: list[tuple[str, float]]) -> str:
    category, share = categories[1]
    if share < WORTH_NAMING:
        return ""
    return f", then {CATEGORY_NAMES[category]} with {share:.0%}"


def _outside(call: Call, environment: Environment) -> Iterator[Finding]:
    """Name the time before a worker took the call, if it is worth naming."""
    share = _share_outside(call)
    if share < WORTH_NAMING:
        return
    of_client = f"{share:.0%} of the client's time"
    if is_queueing(environment):
        at_once = f"{environment[VIRTUAL_USERS]} virtual users"
        served = f"{workers(environment)} workers"
        fact = f"{of_client} was waiting for a free worker ({at_once}, {served})"
        yield QUEUE, fact
        return
    who = "the service" if of_a_service(environment) else "Keystone"
    places = "waiting for a free one, network, the client"
    yield OUTSIDE, f"{of_client} passed outside {who}'s workers ({places})"


def _share_outside(call: Call) -> float:
    """Return the share of the client's time that no worker saw; 0 if not known."""
    client, wall = call["client_seconds"], call["wall_seconds"]
    if not (client and wall and client["mean"]):
        return 0.0
    return 1 - wall["mean"] / client["mean"]


def _waiting(call: Call) -> str:
    share = _share_outside(call)
    return f"outside its workers {share:.0%}, then " if share >= DOMINANT else ""
