"""Measure, inside Keystone, the parts of one warm token call.

Reads one JSON object per line and replies to each with one, until end of input.  The
first one has a token, the body of its response, and passwords with the way to hash
them:

    {"token": "gAAA...", "body": {"token": ...},
     "hashes": {"least": ["password", "pbkdf2_sha512", 1]}}
    {"hashes": {"least": "$pbkdf2-sha512$1$..."}, "statements": ["SELECT ..."],
     "cached_bytes": 1234}

    {"part": "hash_least", "runs": 20}
    {"seconds": [0.000021, ...]}
"""

import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from instrumentation import bare

KEY = "keylag-limits"
"""Of the value in the cache."""
Run = Callable[[], object]


def hash_password(password: str, algorithm: str, rounds: int) -> str:
    """Return a hash as Keystone makes it with these options of [identity]."""
    import keystone.conf
    from keystone.common import password_hashing

    conf = keystone.conf.CONF
    conf.set_override("password_hash_algorithm", algorithm, "identity")
    conf.set_override("password_hash_rounds", rounds, "identity")
    try:
        hashed: str = password_hashing.hash_password(password)
    finally:
        conf.clear_override("password_hash_algorithm", "identity")
        conf.clear_override("password_hash_rounds", "identity")
    return hashed


def check_password(password: str, hashed: str) -> Run:
    """Return the check of a password."""
    from keystone.common import password_hashing

    return lambda: password_hashing.check_password(password, hashed)


def make_token(token: str) -> Run:
    """Return the making of a token like this one."""
    from keystone.token import token_formatters

    formatter = token_formatters.TokenFormatter()
    user_id, methods, audit_ids, _, _, project_id, *_, expires_at = (
        formatter.validate_token(token)
    )
    return lambda: formatter.create_token(
        user_id,
        expires_at,
        audit_ids,
        token_formatters.ProjectScopedPayload,
        methods=methods,
        project_id=project_id,
    )


def cached_token(token: str) -> tuple[Run, int]:
    """Return the read of a validated token from the cache, and its bytes there."""
    from dogpile.cache.api import NO_VALUE, CachedValue
    from keystone.common import provider_api
    from keystone.token import provider

    model = provider_api.ProviderAPIs.token_provider_api.validate_token(token)
    value = CachedValue(model, {"ct": time.time(), "v": 2})
    backend = provider.TOKENS_REGION.actual_backend
    backend.set(KEY, value)
    if backend.get(KEY) is NO_VALUE:
        message = "the cache does not return what was written to it"
        raise ValueError(message)
    return (lambda: backend.get(KEY)), len(pickle.dumps(value))


def user_statements(token: str) -> tuple[Run, list[str]]:
    """Return the read of the token's user without an ORM, and its statements.

    A log-in needs the present password, lock and options of the user, so Keystone does
    not cache them.
    """
    from keystone.common import provider_api, sql
    from keystone.token import token_formatters
    from sqlalchemy import event

    user_id = token_formatters.TokenFormatter().validate_token(token)[0]
    with sql.session_for_read() as session:
        engine = session.get_bind()
    statements: list[tuple[str, Any]] = []

    def record(*arguments: Any) -> None:
        statements.append(arguments[2:4])

    event.listen(engine, "before_cursor_execute", record)
    provider_api.ProviderAPIs.identity_api.driver.get_user(user_id)
    event.remove(engine, "before_cursor_execute", record)
    connection = engine.raw_connection()
    cursor = connection.cursor()

    def read() -> None:
        for statement, parameters in statements:
            cursor.execute(statement, parameters)
            cursor.fetchall()

    return read, [statement for statement, _ in statements]


def prepare(order: Mapping[str, Any]) -> tuple[dict[str, Run], dict[str, Any]]:
    """Return all parts by name, and facts about them."""
    from oslo_serialization import jsonutils

    token, body, wanted = order["token"], order["body"], order["hashes"]
    hashes = {name: hash_password(*how) for name, how in wanted.items()}
    read_cache, cached_bytes = cached_token(token)
    read_user, statements = user_statements(token)
    parts = {
        **{
            f"hash_{name}": check_password(wanted[name][0], hashed)
            for name, hashed in hashes.items()
        },
        "encrypt": make_token(token),
        "cache": read_cache,
        "user": read_user,
        "render": lambda: jsonutils.dumps(body),
    }
    facts = {"hashes": hashes, "statements": statements, "cached_bytes": cached_bytes}
    return parts, facts


def measure(run: Run, runs: int) -> list[float]:
    """Return the seconds of each run."""
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return seconds


def main() -> None:
    """Reserve standard output for replies, and execute the orders of the input."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        bare()
        parts, facts = prepare(json.loads(sys.stdin.readline()))
        print(json.dumps(facts), file=replies, flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            seconds = measure(parts[order["part"]], order["runs"])
            print(json.dumps({"seconds": seconds}), file=replies, flush=True)


if __name__ == "__main__":
    main()
