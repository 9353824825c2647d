"""An arm is a stack: a Keystone with a database and a cache server of its own.

All arms of an experiment are up side by side, each from a copy of the data prepared
for it, and only one has a load at a time.  So nothing is shared but the machine, and
whatever a plan changes, the database's variables or its content too, is changed for
one arm alone.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import pymysql

from keylag import cloud
from keylag.experiment.plan import Arm, Scalar
from keylag.prepared import Prepared
from keylag.record import load_secrets
from keylag.services import keystone, mariadb, memcached, redis
from keylag.services.base import HOST, Service, StackOptions
from keylag.stack import Stack
from keylag.state import CHECKOUT

SERVICES: Final = (mariadb.SERVICE, memcached.SERVICE, keystone.SERVICE)
REDIS_TOO: Final = (redis.SERVICE, *SERVICES)
PLANS: Final = CHECKOUT / "experiments"
"""Where plans lie, and WSGI modules of their own that an arm may name."""
QUIET_DATABASE: Final = {"slow_query_log": "0"}
"""The usual stack logs every statement, which an experiment need not pay for."""
EVENTS: Final = """\
INSERT INTO revocation_event ({column}, issued_before, revoked_at)
SELECT LEFT(SHA2(CONCAT(seq, RAND()), 256), 22), UTC_TIMESTAMP(), UTC_TIMESTAMP()
FROM seq_1_to_{number}"""
"""As Keystone writes them when a token is revoked, but for tokens nobody has."""


def services_of(arm: Arm) -> Sequence[Service]:
    """Return the servers that an arm needs."""
    return REDIS_TOO if arm.cache == "redis" else SERVICES


def options_of(arm: Arm, hash_seed: int) -> StackOptions:
    """Return how an arm's servers are started."""
    return StackOptions(
        cache=arm.cache,
        processes=arm.processes,
        threads=arm.threads,
        module=arm.module,
        environment={
            "KEYLAG_SQL_COMMENT": "false",
            "PYTHONPATH": str(PLANS),
            "PYTHONHASHSEED": str(hash_seed),
            **as_variables(arm.keystone),
            **arm.environment,
        },
        mariadb={k: as_text(v) for k, v in {**QUIET_DATABASE, **arm.mariadb}.items()},
    )


def as_variables(sections: Mapping[str, Mapping[str, Scalar]]) -> dict[str, str]:
    """Write options of keystone.conf as the variables that oslo.config reads."""
    return {
        f"OS_{section}__{option}".upper(): as_text(value)
        for section, options in sections.items()
        for option, value in options.items()
    }


def as_text(value: Scalar) -> str:
    """Write a value as oslo.config and MariaDB both read it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def prepared_for(arm: Arm) -> Prepared:
    """Return the data that an arm starts from.

    The options of `[identity]` belong to it: they decide how passwords are hashed.
    """
    identity = arm.keystone.get("identity", {})
    key = cloud.KEY
    if identity or arm.users != cloud.USERS:
        key += f" users {arm.users} identity {json.dumps(identity, sort_keys=True)}"
    return Prepared(key, partial(cloud.fill, users=arm.users))


def revoke(stack: Stack, arm: Arm) -> None:
    """Make the revocation table hold just the events that the arm asks for."""
    with (
        pymysql.connect(
            host=HOST,
            port=stack.port("mariadb"),
            user="keystone",
            password=load_secrets(stack.data).database,
            database="keystone",
            autocommit=True,
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM revocation_event")
        if arm.revocation_events:
            cursor.execute(
                EVENTS.format(column=arm.revoked_by, number=arm.revocation_events)
            )
