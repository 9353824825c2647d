"""The properties of load plans: type and range of each, in one table.

JMeter accepts any text and reads an invalid number as zero or as no limit, so values
are checked before it starts.  Properties of custom plans are not checked.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_DAY_SECONDS: Final = 86_400
_HOUR_MS: Final = 3_600_000
_HUNDRED: Final = 100
NO_LIMIT: Final = -1
"""Value of `loops` for a virtual user that sends until the load's time is over."""


@dataclass(frozen=True)
class PropertyType:
    """The values that a property accepts, and their description for users."""

    description: str
    accepts: Callable[[str], bool]


def _pattern(description: str, pattern: str) -> PropertyType:
    return PropertyType(description, lambda text: bool(re.fullmatch(pattern, text)))


def _one_of(*known: str) -> PropertyType:
    return PropertyType(" or ".join(known), lambda text: text in known)


def _in_range(text: str, pattern: re.Pattern[str], low: float, high: float) -> bool:
    value = float(text) if pattern.fullmatch(text) else inf
    return low <= value <= high


def _integer(low: int, high: int, unit: str = "") -> PropertyType:
    description = f"a whole number{unit} from {low} to {high}"
    return PropertyType(description, lambda text: _in_range(text, _INTEGER, low, high))


def _decimal(low: int, high: int, unit: str = "") -> PropertyType:
    description = f"a number{unit} from {low} to {high}"
    return PropertyType(description, lambda text: _in_range(text, _DECIMAL, low, high))


_COUNT: Final = _integer(1, 1_000_000)
_LOOPS: Final = PropertyType(
    f"{_COUNT.description}, or {NO_LIMIT} for no limit",
    lambda text: text == str(NO_LIMIT) or _COUNT.accepts(text),
)
_PROTOCOL: Final = _one_of("http", "https")
_HOST: Final = _pattern("a host name or an address", r"[^\s/]+")
_PORT: Final = _integer(1, 65_535)
_PER_CENT: Final = _integer(0, _HUNDRED)
_TIMEOUT: Final = _integer(1, _HOUR_MS, " of milliseconds")
_SEED: Final = _integer(-(2**31), 2**31 - 1)
_NAME: Final = _pattern("a name", r".+")
_ANY: Final = PropertyType("any text", lambda _text: True)

PROPERTY_TYPES: Final[Mapping[str, PropertyType]] = {
    "protocol": _PROTOCOL,
    "host": _HOST,
    "port": _PORT,
    "path_prefix": _pattern("empty, or a path that begins with /", r"(/\S*)?"),
    "query": _pattern("empty, or a query that begins with ?", r"(\?\S*)?"),
    "users_file": _pattern("a file", r".+"),
    "threads": _integer(1, 10_000),
    "ramp_seconds": _integer(0, _DAY_SECONDS, " of seconds"),
    "loops": _LOOPS,
    "rate_per_second": _decimal(0, 1_000_000),
    "arrivals": _integer(0, 1_000_000),
    "arrivals_seed": _SEED,
    "duration_seconds": _integer(1, 7 * _DAY_SECONDS, " of seconds"),
    "keep_alive": _one_of("true", "false"),
    "connect_timeout_ms": _TIMEOUT,
    "response_timeout_ms": _TIMEOUT,
    "slice_ms": _integer(0, _HOUR_MS, " of milliseconds"),
    "slice_loads": _integer(1, 1_000),
    "slice_number": _integer(0, 999),
    "slice_after_seconds": _decimal(0, 3_600, " of seconds"),
    "warm_up": _integer(0, 1_000_000),
    "service_username": _NAME,
    "service_password": _ANY,
    "service_user_domain": _NAME,
    "service_project": _NAME,
    "service_project_domain": _NAME,
    "subjects": _integer(1, 100_000),
    "target_protocol": _PROTOCOL,
    "target_host": _HOST,
    "target_port": _PORT,
    "target_path": _pattern("a path that begins with /", r"/\S*"),
    "object_bytes": _integer(0, 1_000_000),
    "issue_percent": _PER_CENT,
    "validate_percent": _PER_CENT,
    "revoke_percent": _PER_CENT,
    "revoked_percent": _PER_CENT,
    "seed": _SEED,
}
SHARE_PROPERTIES: Final = ("issue_percent", "validate_percent", "revoke_percent")
"""Shares of the requests of one load; they add up to 100 %."""

Mistake = tuple[str, str]
"""The name of a property, and why its value is invalid."""


def find_mistakes(
    values: Mapping[str, str], defaults: Mapping[str, str]
) -> list[Mistake]:
    """Return the invalid values; `defaults` apply to properties without a value."""
    wrong = [*_type_mistakes(values, defaults)]
    every = {**defaults, **values}
    return wrong or [*_share_mistakes(values, every), *_open_load_mistakes(every)]


def _type_mistakes(
    values: Mapping[str, str], defaults: Mapping[str, str]
) -> Iterator[Mistake]:
    for name, text in values.items():
        property_type = PROPERTY_TYPES.get(name, _ANY)
        if not property_type.accepts(text):
            seconds = text.removesuffix("s").strip()  # of "10s"
            example = seconds if property_type.accepts(seconds) else defaults[name]
            such_as = f", such as {example}" if example else ""
            yield name, f"{text or 'empty'} is not {property_type.description}{such_as}"


def _share_mistakes(
    values: Mapping[str, str], every: Mapping[str, str]
) -> Iterator[Mistake]:
    given = [name for name in SHARE_PROPERTIES if name in values]
    shares = {name: every[name] for name in SHARE_PROPERTIES if name in every}
    if not given or not all(map(_PER_CENT.accepts, shares.values())):
        return
    if (total := sum(map(int, shares.values()))) != _HUNDRED:
        written = ", ".join(f"{name}={share}" for name, share in shares.items())
        yield given[0], f"{written} add up to {total} %, not to {_HUNDRED} %"


def _open_load_mistakes(every: Mapping[str, str]) -> Iterator[Mistake]:
    if not int(every.get("arrivals", 0)):
        return
    if not float(every["rate_per_second"]):
        yield "arrivals", "needs rate_per_second, the rate at which requests arrive"
    if every["loops"] != str(NO_LIMIT):
        yield "arrivals", f"needs loops={NO_LIMIT}, so that every request is sent"
