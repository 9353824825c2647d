"""Hooks for authentication methods, refusals and password hashes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from keylag_otel.counters import counter_id
from keylag_otel.request_timer import RequestTimer

#: The methods that Keystone ships.  Keystone refuses unknown methods only after a
#: client has named any number of them, so all other names get the label "other", and
#: all combinations except COMBINATIONS the label "multiple".
METHODS = frozenset(
    {
        "application_credential",
        "external",
        "kerberos",
        "mapped",
        "oauth1",
        "openid",
        "password",
        "saml2",
        "token",
        "totp",
        "x509",
    }
)
OTHER = "other"
MULTIPLE = "multiple"

#: Combinations of methods: multi-factor authentication as in Keystone's documentation,
#: and a token that is rescoped with a second factor.
COMBINATIONS = {
    frozenset(names.split("+")): names
    for names in ("password+totp", "token+totp", "password+token")
}

#: Pattern of the cost in a hash, rounds or log2 of n, by algorithm.
_HASHES = {
    "bcrypt_sha256": re.compile(r"\$bcrypt-sha256\$.*?r=(\d{1,9})\b"),
    "bcrypt": re.compile(r"\$2[abxy]\$(\d{1,9})\$"),
    "scrypt": re.compile(r"\$scrypt\$ln=(\d{1,9})\b"),
    "pbkdf2_sha512": re.compile(r"\$pbkdf2-sha512\$(\d{1,9})\$"),
    "sha512_crypt": re.compile(r"\$6\$rounds=(\d{1,9})\b"),
}


def record_auth_method(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Set the label of the methods that the client names."""
    auth = args[0] if args else kwargs["auth"]
    try:
        timer.auth_method = auth_method_label(auth["identity"]["methods"])
    except (KeyError, TypeError):  # Keystone refuses a request without methods
        timer.auth_method = OTHER


def auth_method_label(methods: Iterable[str]) -> str:
    """Return a label for authentication methods: ``password``, ``password+totp``."""
    names = frozenset(methods)
    if len(names) > 1:
        return COMBINATIONS.get(names, MULTIPLE)
    return next((name for name in names if name in METHODS), OTHER)


def count_auth_failure(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count a refusal by the class of Keystone's exception."""
    del args
    reason = _keystone_exception_name(error.__context__) if _is_generic(error) else None
    reason = reason or _keystone_exception_name(error) or OTHER
    timer.increment(counter_id("auth_failures", timer.auth_method or OTHER, reason))


def _is_generic(error: BaseException) -> bool:
    # Keystone raises Unauthorized in place of the reason, which is its context.
    return type(error).__name__ == "Unauthorized"


def _keystone_exception_name(error: BaseException | None) -> str | None:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "keystone.exception" else None


def hash_algorithm(hashed: str) -> tuple[str, int]:
    """Return algorithm and cost of a password hash; ("other", 0) if unknown."""
    for algorithm, pattern in _HASHES.items():
        found = pattern.match(hashed)
        if found:
            return algorithm, int(found[1])
    return OTHER, 0


def count_password_check(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a password check by algorithm and cost of the hash."""
    hashed = args[1] if len(args) > 1 else kwargs["hashed"]
    _count_hash(timer, hashed, "check")


def count_password_hash(
    timer: RequestTimer, args: tuple[Any, ...], hashed: Any
) -> None:
    """Count a hashed password by algorithm and cost."""
    del args
    _count_hash(timer, hashed, "set")


def _count_hash(timer: RequestTimer, hashed: Any, action: str) -> None:
    if isinstance(hashed, str):
        timer.increment(counter_id("password_hashes", *hash_algorithm(hashed), action))
