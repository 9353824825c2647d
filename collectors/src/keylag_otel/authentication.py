"""Who asks how, why it was refused, and how passwords are hashed."""

from __future__ import annotations

import re
from typing import Any

from keylag_otel.clock import Clock
from keylag_otel.tally import tally

#: The names that Keystone ships; anything else is told apart only as "other",
#: since a client may send any text as a method.
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

#: Algorithm to what finds its cost in a hash: rounds, or log2 of n.
_HASHES = {
    "bcrypt_sha256": re.compile(r"\$bcrypt-sha256\$.*?r=(\d+)"),
    "bcrypt": re.compile(r"\$2[abxy]\$(\d+)\$"),
    "scrypt": re.compile(r"\$scrypt\$ln=(\d+)"),
    "pbkdf2_sha512": re.compile(r"\$pbkdf2-sha512\$(\d+)\$"),
    "sha512_crypt": re.compile(r"\$6\$rounds=(\d+)"),
}


def note_method(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note the methods asked for, as one label: ``password+totp``."""
    auth = args[0] if args else kwargs["auth"]
    methods = sorted(
        method if method in METHODS else "other"
        for method in auth["identity"]["methods"]
    )
    clock.auth_method = "+".join(dict.fromkeys(methods))


def note_failure(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a refusal by the class of Keystone's exception."""
    del args
    reason = _reason(error.__context__) if _is_vague(error) else None
    reason = reason or _reason(error) or "other"
    clock.tally(tally("auth_failures", clock.auth_method or "other", reason))


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
    return "other", 0


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
