"""What would help, in words: a table from where the time goes to what to change."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keylag.breakdown import Call, Run
from keylag.phases import BLOCK_NAMES, OPERATIONS, Cell, block_of

Environment = Mapping[str, Any]

CACHE_BACKEND: Final = "cache_backend"
"""Key of a run's environment: the value of Keystone's `[cache] backend`."""

WORTH_NAMING: Final = 0.15
"""A second block, or time outside Keystone, is named from this share on."""


def _any(_environment: Environment) -> bool:
    return True


def _without_cache(environment: Environment) -> bool:
    return str(environment.get(CACHE_BACKEND, "")).endswith("null")


def _with_cache(environment: Environment) -> bool:
    return CACHE_BACKEND in environment and not _without_cache(environment)


def _of_a_service(environment: Environment) -> bool:
    return environment.get("plan") == "service-call"


@dataclass(frozen=True)
class Advice:
    """What helps when most of the time is in `block`, if `holds` for the run."""

    block: str
    text: str
    holds: Callable[[Environment], bool] = _any


TABLE: Final = (
    Advice(
        "password_hash",
        "lowering [identity] password_hash_rounds (for passwords set from then on) "
        "or reusing tokens is what would help; more processes raise the rate, not "
        "the speed of one call",
    ),
    Advice(
        "sql",
        "[cache] backend is dogpile.cache.null, so every call asks the database: "
        "oslo_cache.memcache_pool is what would help",
        _without_cache,
    ),
    Advice(
        "sql",
        "the cache is on, so look at which statements remain (open the break-down) "
        "and at the distance to the database",
        _with_cache,
    ),
    Advice(
        "sql",
        "if [cache] backend is dogpile.cache.null, as it is by default, "
        "oslo_cache.memcache_pool is what would help",
    ),
    Advice(
        "orm",
        "fewer statements are what would help: [cache] backend = "
        "oslo_cache.memcache_pool",
        _without_cache,
    ),
    Advice(
        "orm",
        "fewer statements are what would help: see which steps still ask the database",
    ),
    Advice(
        "cache",
        "fewer round trips are what would help: a cache server near Keystone, and a "
        "memcached backend, since with Redis each repeated look-up within a request "
        "goes over the network",
    ),
    Advice(
        "revocation",
        "fewer live revocation events are what would help: fewer token deletions, "
        "a shorter [token] expiration, and [revoke] caching left on",
    ),
    Advice(
        "token_crypto",
        "fewer keys ([fernet_tokens] max_active_keys) on a local file system are "
        "what would help, for keys are read at every use",
    ),
    Advice(
        "other",
        "a service that waits for Keystone is helped by a token cache that its "
        "workers share ([keystone_authtoken] memcached_servers) and a longer "
        "token_cache_time",
        _of_a_service,
    ),
    Advice(
        "other",
        "what no part claims is Keystone's own Python: more processes rather than "
        "threads, or fewer calls, are what would help",
    ),
)

_STEPS: Final[Mapping[str, str]] = {"other": "outside the named steps"}


def sentence(call: Call, environment: Environment | None = None) -> str:
    """Say in words where the time of a call goes and what would help.

    `environment` is the run's; with its `cache_backend` the advice is sharper.
    """
    client, blocks = call["client_seconds"], _by_share(call)
    if client is None:
        return f"{title(call)}: none of {call['requests']} requests was answered well."
    start = f"{title(call)} takes {milliseconds(client['mean'])} at the client"
    if not blocks:
        return f"{start}; Keystone sent no Server-Timing, so where is not known."
    block, share = blocks[0]
    most = f"{share:.0%} of the server's time is {BLOCK_NAMES[block]}"
    words = [
        f"{start}; {most}, {_where(call, block)}{_second(blocks)}",
        *_outside(call),
        advice(block, environment or {}),
    ]
    return "; ".join(words).replace("%", " %") + "."


def conclusion(runs: Sequence[Run]) -> str:
    """Say in one line where the time of every call goes, in each run."""
    said: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for call in run["calls"]:
            for block, share in _by_share(call)[:1]:
                words = f"{BLOCK_NAMES[block]} {share:.0%} ({run['name']})"
                said[title(call)].append(words)
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


def advice(block: str, environment: Environment) -> str:
    """Return the first row of the table for a block that holds for the run."""
    return next(
        row.text for row in TABLE if row.block == block and row.holds(environment)
    )


def _by_share(call: Call) -> list[tuple[str, float]]:
    pairs = ((name, numbers["share"]) for name, numbers in call["blocks"].items())
    return sorted(pairs, key=lambda pair: -pair[1])


def _where(call: Call, block: str) -> str:
    """Name the operation that has most of the block."""
    shares: dict[str, float] = dict.fromkeys(OPERATIONS, 0.0)
    for name, numbers in call["cells"].items():
        cell = _cell(name)
        if block_of(cell) == block:
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


def _second(blocks: list[tuple[str, float]]) -> str:
    block, share = blocks[1]
    if share < WORTH_NAMING:
        return ""
    return f", then {BLOCK_NAMES[block]} with {share:.0%}"


def _outside(call: Call) -> list[str]:
    """Name the time that Keystone did not see, if it is worth naming."""
    client, wall = call["client_seconds"], call["wall_seconds"]
    if not (client and wall):
        return []
    share = 1 - wall["mean"] / client["mean"] if client["mean"] else 0.0
    if share < WORTH_NAMING:
        return []
    words = (
        f"{share:.0%} of the client's time passed outside Keystone's workers "
        "(waiting for a free one, network, the client)"
    )
    return [words]
