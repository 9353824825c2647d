"""Who asks how, why it was refused, and how passwords are hashed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from keylag_otel.clock import Clock
from keylag_otel.tally import tally

#: The methods that Keystone ships.  A client may name any method and any number
#: of them before Keystone refuses the request, so all other names are "other" and
#: all other combinations than these "multiple".
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

#: Several methods in one request: multi-factor authentication as Keystone's own
#: documentation has it, and with a token that is to be given another scope.
COMBINATIONS = {
    frozenset(names.split("+")): names
    for names in ("password+totp", "token+totp", "password+token")
}

#: Algorithm to what finds its cost in a hash: rounds, or log2 of n.
_HASHES = {
    "bcrypt_sha256": re.compile(r"\$bcrypt-sha256\$.*?r=(\d{1,9})\b"),
    "bcrypt": re.compile(r"\$2[abxy]\$(\d{1,9})\$"),
    "scrypt": re.compile(r"\$scrypt\$ln=(\d{1,9})\b"),
    "pbkdf2_sha512": re.compile(r"\$pbkdf2-sha512\$(\d{1,9})\$"),
    "sha512_crypt": re.compile(r"\$6\$rounds=(\d{1,9})\b"),
}


def note_method(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note the methods that the client names, as one label."""
    auth = args[0] if args else kwargs["auth"]
    try:
        clock.auth_method = label_of(auth["identity"]["methods"])
    except (KeyError, TypeError):  # it names none, and Keystone refuses it
        clock.auth_method = OTHER


def label_of(methods: Iterable[str]) -> str:
    """Return the label of authentication methods: ``password``, ``password+totp``."""
    names = frozenset(methods)
    if len(names) > 1:
        return COMBINATIONS.get(names, MULTIPLE)
    return next((name for name in names if name in METHODS), OTHER)


def note_failure(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a refusal by the class of Keystone's exception."""
    del args
    reason = _reason(error.__context__) if _is_vague(error) else None
    reason = reason or _reason(error) or OTHER
    clock.tally(tally("auth_failures", clock.auth_method or OTHER, reason))


def _is_vague(error: BaseException) -> bool:
    """Return whether this is what callers are told in place of the reason."""
    return type(error).__name__ == "Unauthorized"


def _reason(error: BaseException | None) -> str | None:
    """Return the name of an exception of Keystone's own; None of any other."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "keystone.exception" else None


def algorithm_of(hashed: str) -> tuple[str, int]:
    """Return the algorithm and cost of a password hash; ("other", 0) if unknown."""
    for algorithm, pattern in _HASHES.items():
        found = pattern.match(hashed)
        if found:
            return algorithm, int(found[1])
    return OTHER, 0


def note_check(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count the check of a password, by the hash that it is checked against."""
    hashed = args[1] if len(args) > 1 else kwargs["hashed"]
    _count_hash(clock, hashed, "check")


def note_hash(clock: Clock, args: tuple[Any, ...], hashed: Any) -> None:
    """Count a password that was hashed, by the hash that came out."""
    del args
    _count_hash(clock, hashed, "set")


def _count_hash(clock: Clock, hashed: Any, action: str) -> None:
    if isinstance(hashed, str):
        clock.tally(tally("password_hashes", *algorithm_of(hashed), action))
