"""The properties of the load plans: the type and the range of each, in one table.

JMeter takes any text and reads a wrong number as zero or as no limit, so values are
checked before it starts.  A plan of one's own may have properties beside these; they
are not checked.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_DAY_SECONDS: Final = 86_400
_HOUR_MS: Final = 3_600_000
_HUNDRED: Final = 100
NO_LIMIT: Final = -1
"""As `loops`: a virtual user sends until the time is over."""


@dataclass(frozen=True)
class Kind:
    """What a property may be."""

    words: str
    accepts: Callable[[str], bool]


def _matching(words: str, pattern: str) -> Kind:
    return Kind(words, lambda text: bool(re.fullmatch(pattern, text)))


def _one_of(*known: str) -> Kind:
    return Kind(" or ".join(known), lambda text: text in known)


def _in_range(text: str, pattern: re.Pattern[str], low: float, high: float) -> bool:
    value = float(text) if pattern.fullmatch(text) else inf
    return low <= value <= high


def _whole(low: int, high: int, unit: str = "") -> Kind:
    words = f"a whole number{unit} from {low} to {high}"
    return Kind(words, lambda text: _in_range(text, _WHOLE, low, high))


def _number(low: int, high: int, unit: str = "") -> Kind:
    words = f"a number{unit} from {low} to {high}"
    return Kind(words, lambda text: _in_range(text, _NUMBER, low, high))


_COUNT: Final = _whole(1, 1_000_000)
_LOOPS: Final = Kind(
    f"{_COUNT.words}, or {NO_LIMIT} for no limit",
    lambda text: text == str(NO_LIMIT) or _COUNT.accepts(text),
)
_PROTOCOL: Final = _one_of("http", "https")
_HOST: Final = _matching("a host name or an address", r"[^\s/]+")
_PORT: Final = _whole(1, 65_535)
_PER_CENT: Final = _whole(0, _HUNDRED)
_TIMEOUT: Final = _whole(1, _HOUR_MS, " of milliseconds")
_NAME: Final = _matching("a name", r".+")
_ANY: Final = Kind("any text", lambda _text: True)

KINDS: Final[Mapping[str, Kind]] = {
    "protocol": _PROTOCOL,
    "host": _HOST,
    "port": _PORT,
    "path_prefix": _matching("empty, or a path that begins with /", r"(/\S*)?"),
    "query": _matching("empty, or a query that begins with ?", r"(\?\S*)?"),
    "users_file": _matching("a file", r".+"),
    "threads": _whole(1, 10_000),
    "ramp_seconds": _whole(0, _DAY_SECONDS, " of seconds"),
    "loops": _LOOPS,
    "rate_per_second": _number(0, 1_000_000),
    "duration_seconds": _whole(1, 7 * _DAY_SECONDS, " of seconds"),
    "keep_alive": _one_of("true", "false"),
    "connect_timeout_ms": _TIMEOUT,
    "response_timeout_ms": _TIMEOUT,
    "slice_ms": _whole(0, _HOUR_MS, " of milliseconds"),
    "slice_loads": _whole(1, 1_000),
    "slice_number": _whole(0, 999),
    "slice_after_seconds": _number(0, 3_600, " of seconds"),
    "warm_up": _whole(0, 1_000_000),
    "service_username": _NAME,
    "service_password": _ANY,
    "service_user_domain": _NAME,
    "service_project": _NAME,
    "service_project_domain": _NAME,
    "subjects": _whole(1, 100_000),
    "target_protocol": _PROTOCOL,
    "target_host": _HOST,
    "target_port": _PORT,
    "target_path": _matching("a path that begins with /", r"/\S*"),
    "issue_percent": _PER_CENT,
    "validate_percent": _PER_CENT,
    "revoke_percent": _PER_CENT,
    "revoked_percent": _PER_CENT,
    "seed": _whole(-(2**31), 2**31 - 1),
}
SHARES: Final = ("issue_percent", "validate_percent", "revoke_percent")
"""Of the requests of one load; together they are all of them."""

Mistake = tuple[str, str]
"""The property, and what is wrong with its value."""


def mistakes(values: Mapping[str, str], defaults: Mapping[str, str]) -> list[Mistake]:
    """Return what is wrong with `values`, which stand instead of these defaults."""
    wrong = [*_wrong(values, defaults)]
    return wrong or [*_wrong_shares(values, defaults)]


def _wrong(values: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[Mistake]:
    for name, text in values.items():
        kind = KINDS.get(name, _ANY)
        if not kind.accepts(text):
            seconds = text.removesuffix("s").strip()  # of "10s"
            example = seconds if kind.accepts(seconds) else defaults[name]
            such_as = f", such as {example}" if example else ""
            yield name, f"{text or 'empty'} is not {kind.words}{such_as}"


def _wrong_shares(
    values: Mapping[str, str], defaults: Mapping[str, str]
) -> Iterator[Mistake]:
    given = [name for name in SHARES if name in values]
    every = {**defaults, **values}
    shares = {name: every[name] for name in SHARES if name in every}
    if not given or not all(map(_PER_CENT.accepts, shares.values())):
        return
    if (total := sum(map(int, shares.values()))) != _HUNDRED:
        written = ", ".join(f"{name}={share}" for name, share in shares.items())
        yield given[0], f"{written} add up to {total} %, and have to be {_HUNDRED} %"
