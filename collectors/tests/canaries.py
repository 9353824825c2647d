"""Values that nothing of Keylag may ever show, and everything that it does show."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import log_ins
from keystone_client import Keystone, password

SECRET = "canary-password-1fd0"  # noqa: S105
TOTP_SECRET = "CANARYCANARYCANARYCANARYCANARY22"  # noqa: S105
ODD = "canary-odd-9c77"


class Canaries:
    """What was planted: a kind to each value of it."""

    def __init__(self) -> None:
        self.planted: dict[str, set[str]] = {}

    def plant(self, kind: str, *values: str) -> None:
        self.planted.setdefault(kind, set()).update(values)

    def found_in(self, output: str) -> set[str]:
        """Return the kinds of which a value stands in the output."""
        return {
            kind
            for kind, values in self.planted.items()
            if any(_stands_in(value, output) for value in values)
        }


def _stands_in(value: str, output: str) -> bool:
    """Return whether the value is there; a code of digits only as a whole number."""
    if value.isdigit():
        return re.search(rf"(?<![\d.]){value}(?![\d.])", output) is not None
    return value in output


class Output:
    """All that Keylag shows anybody, as text."""

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.headers: list[str] = []
        self.logs: list[str] = []

    @contextmanager
    def keys_of_memcached(self, canaries: Canaries) -> Iterator[None]:
        """Plant every key that python-memcached is asked for."""
        import memcache

        asked = memcache.Client._get_server

        def planting(client: Any, key: Any) -> Any:
            canaries.plant("cache key", key.decode() if type(key) is bytes else key)
            return asked(client, key)

        memcache.Client._get_server = planting
        yield
        memcache.Client._get_server = asked

    def connected(self, connection: Any, _record: Any) -> None:
        """Keep the comments of what this connection is given."""
        connection.set_trace_callback(
            lambda statement: self.comments.extend(
                re.findall(r"/\*.*?\*/", statement, re.DOTALL)
            )
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep Keylag's logs, whole tracebacks included, and all warnings."""
        handler = _Keeping(self.logs)
        logger = logging.getLogger("keylag_otel")
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        own = [w for w in caught if "keylag" in w.filename]
        self.logs += [str(warning.message) for warning in own]
        logger.removeHandler(handler)


class _Keeping(logging.Handler):
    def __init__(self, kept: list[str]) -> None:
        super().__init__()
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(self.format(record))


def exercise(keystone: Keystone, canaries: Canaries, name: str) -> Iterator[Any]:
    """Do everything with planted values; yield each reply."""
    user = log_ins.make_user(keystone, name, password=SECRET)["id"]
    secret = log_ins.make_secret(keystone, name)
    log_ins.make_totp(keystone, user, TOTP_SECRET)
    trust = log_ins.make_trust(keystone, user)["id"]
    code = log_ins.totp_code(TOTP_SECRET)
    canaries.plant("password", SECRET)
    canaries.plant("application credential", secret["id"], secret["secret"])
    canaries.plant("totp", TOTP_SECRET, code)
    canaries.plant("id", user, trust, name, *keystone.ids.values())
    in_trust = {"OS-TRUST:trust": {"id": trust}}
    for auth in (
        password(name, SECRET),
        password(name, SECRET, in_trust),
        password(name, f"{SECRET}-wrong"),
        password(ODD, SECRET),
        log_ins.totp(user, code),
        log_ins.totp(user, code[::-1]),
        log_ins.application_credential(secret),
        log_ins.application_credential({**secret, "secret": ODD}),
        log_ins.token(ODD),
        {"identity": {"methods": [ODD], ODD: {}}},
    ):
        reply = keystone.issue(auth)
        yield reply
        if reply.status == 201:
            yield from _use(keystone, canaries, reply.token, user)


def _use(keystone: Keystone, canaries: Canaries, token: str, user: str) -> Any:
    """Use a token well and badly, then revoke it."""
    canaries.plant("token", token)
    canaries.plant("odd", ODD)
    subject = {"X-Subject-Token": token}
    yield keystone.validate(keystone.admin, token)
    yield keystone.call("GET", f"/v3/users/{user}?{ODD}={ODD}", None, token)
    yield keystone.call("GET", f"/v3/users/{ODD}/{ODD}", None, token)
    yield keystone.call(ODD, f"/v3/users/{user}", None, token, **{ODD: ODD})
    yield keystone.call("GET", f"/{ODD}", None, ODD, **{"User-Agent": ODD})
    yield keystone.call("DELETE", "/v3/auth/tokens", None, token, **subject)
    yield keystone.validate(token)


def break_our_notes() -> None:
    """Let what Keylag does beside the calls raise, with all that it was given."""
    from keylag_otel import authentication, cache_layers, revocation, statements

    break_all(
        (authentication, "algorithm_of"),
        (authentication, "_reason"),
        (revocation, "kind_of"),
        (statements, "table_class"),
        (cache_layers, "note_set"),
        (cache_layers, "note_deleted"),
    )
    statements._known.clear()


def break_all(*places: tuple[Any, str]) -> None:
    """Let these functions of modules raise."""
    for module, name in places:
        setattr(module, name, fail)


def fail(*args: Any, **kwargs: Any) -> Any:
    told = f"{args!r}, {kwargs!r}, {[vars_of(a) for a in args]}"
    message = f"could not make sense of {told}"
    raise ValueError(message)


def vars_of(thing: Any) -> Any:
    return getattr(thing, "__dict__", None)
