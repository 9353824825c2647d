"""Secret values that Keylag must never output, and all of its outputs."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import auth_scenarios
from keystone_client import Keystone, password

SECRET = "canary-password-1fd0"  # noqa: S105
TOTP_SECRET = "CANARYCANARYCANARYCANARYCANARY22"  # noqa: S105
ODD = "canary-odd-9c77"


class Secrets:
    """Secret values by kind."""

    def __init__(self) -> None:
        self.added: dict[str, set[str]] = {}

    def add(self, kind: str, *values: str) -> None:
        self.added.setdefault(kind, set()).update(values)

    def found_in(self, output: str) -> set[str]:
        """Return the kinds with a value in the output."""
        return {
            kind
            for kind, values in self.added.items()
            if any(_stands_in(value, output) for value in values)
        }


def _stands_in(value: str, output: str) -> bool:
    """Return whether an output contains a value; digits match as a whole number."""
    if value.isdigit():
        return re.search(rf"(?<![\d.]){value}(?![\d.])", output) is not None
    return value in output


class Output:
    """All outputs of Keylag as text."""

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.headers: list[str] = []
        self.logs: list[str] = []

    @contextmanager
    def keys_of_memcached(self, secrets: Secrets) -> Iterator[None]:
        """Register every cache key of python-memcached as a secret."""
        import memcache

        asked = memcache.Client._get_server

        def recording_keys(client: Any, key: Any) -> Any:
            secrets.add("cache key", key.decode() if type(key) is bytes else key)
            return asked(client, key)

        memcache.Client._get_server = recording_keys
        yield
        memcache.Client._get_server = asked

    def connected(self, connection: Any, _record: Any) -> None:
        """Record the SQL comments of a connection."""
        connection.set_trace_callback(
            lambda statement: self.comments.extend(
                re.findall(r"/\*.*?\*/", statement, re.DOTALL)
            )
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record Keylag's logs with tracebacks, and all warnings."""
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
        self._is_traced = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._is_traced.append(self.format(record))


def exercise(keystone: Keystone, secrets: Secrets, name: str) -> Iterator[Any]:
    """Make all kinds of requests with secret values; yield the replies."""
    user = auth_scenarios.make_user(keystone, name, password=SECRET)["id"]
    secret = auth_scenarios.make_secret(keystone, name)
    auth_scenarios.make_totp(keystone, user, TOTP_SECRET)
    trust = auth_scenarios.make_trust(keystone, user)["id"]
    code = auth_scenarios.totp_code(TOTP_SECRET)
    secrets.add("password", SECRET)
    secrets.add("application credential", secret["id"], secret["secret"])
    secrets.add("totp", TOTP_SECRET, code)
    secrets.add("id", user, trust, name, *keystone.ids.values())
    in_trust = {"OS-TRUST:trust": {"id": trust}}
    for auth in (
        password(name, SECRET),
        password(name, SECRET, in_trust),
        password(name, f"{SECRET}-wrong"),
        password(ODD, SECRET),
        auth_scenarios.totp(user, code),
        auth_scenarios.totp(user, code[::-1]),
        auth_scenarios.application_credential(secret),
        auth_scenarios.application_credential({**secret, "secret": ODD}),
        auth_scenarios.token(ODD),
        {"identity": {"methods": [ODD], ODD: {}}},
    ):
        reply = keystone.issue(auth)
        yield reply
        if reply.status == 201:
            yield from _use(keystone, secrets, reply.token, user)


def _use(keystone: Keystone, secrets: Secrets, token: str, user: str) -> Any:
    """Use a token in valid and invalid ways, then revoke it."""
    secrets.add("token", token)
    secrets.add("odd", ODD)
    subject = {"X-Subject-Token": token}
    yield keystone.validate(keystone.admin, token)
    yield keystone.call("GET", f"/v3/users/{user}?{ODD}={ODD}", None, token)
    yield keystone.call("GET", f"/v3/users/{ODD}/{ODD}", None, token)
    yield keystone.call(ODD, f"/v3/users/{user}", None, token, **{ODD: ODD})
    yield keystone.call("GET", f"/{ODD}", None, ODD, **{"User-Agent": ODD})
    yield keystone.call("DELETE", "/v3/auth/tokens", None, token, **subject)
    yield keystone.validate(token)


def break_hooks() -> None:
    """Make the functions of hooks raise, with their arguments in the message."""
    from keylag_otel import authentication, cache_layers, revocation, statements

    break_all(
        (authentication, "hash_algorithm"),
        (authentication, "_keystone_exception_name"),
        (revocation, "kind_of"),
        (statements, "table_class"),
        (cache_layers, "count_cache_set"),
        (cache_layers, "count_cache_delete"),
    )
    statements._cached_ids.clear()


def break_all(*places: tuple[Any, str]) -> None:
    """Make functions of modules raise."""
    for module, name in places:
        setattr(module, name, fail)


def fail(*args: Any, **kwargs: Any) -> Any:
    arguments = f"{args!r}, {kwargs!r}, {[vars_of(a) for a in args]}"
    message = f"cannot process {arguments}"
    raise ValueError(message)


def vars_of(thing: Any) -> Any:
    return getattr(thing, "__dict__", None)
