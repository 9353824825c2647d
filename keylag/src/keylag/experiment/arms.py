"""An arm is a stack: a Keystone with a database and a cache server of its own.

All arms of an experiment are up side by side, each from a copy of the data prepared
for it, and only one sends at a time.  So nothing is shared but the machine, and
whatever a plan changes, the database's variables or its content too, is changed for
one arm alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pymysql

from keylag import sample_cloud
from keylag.experiment.schedule import Block
from keylag.experiment.settings import Arm, Scalar
from keylag.services import SERVICES, keystone, mariadb, memcached, require_programs
from keylag.services.base import HOST, Service, StackOptions
from keylag.stack import InitialData, Stack
from keylag.stack_record import load_secrets
from keylag.state import CHECKOUT, state_folder
from keylag.tools import Tools
from keylag.tools.install import require_tool
from keylag.tools.venvs import KEYSTONE_TOOLS

NEEDED: Final = (mariadb.SERVICE, memcached.SERVICE, keystone.SERVICE)
PLANS: Final = CHECKOUT / "experiments"
"""Where plans lie, and WSGI modules of their own that an arm may name."""
QUIET_DATABASE: Final = {"slow_query_log": "0"}
"""The usual stack logs every statement, which an experiment need not pay for."""
USUAL_CLOUD: Final = [sample_cloud.USERS, 0, {}]
"""Users, more services and options of `[identity]` that `keylag up` has, too."""
EVENTS: Final = """\
INSERT INTO revocation_event ({column}, issued_before, revoked_at)
SELECT LEFT(SHA2(CONCAT(seq, RAND()), 256), 22), UTC_TIMESTAMP(), UTC_TIMESTAMP()
FROM seq_1_to_{number}"""
"""As Keystone writes them when a token is revoked, but for tokens nobody has."""


def tools_of(arm: Arm) -> Tools:
    """Return the programs of an arm; raises ToolError if one is missing."""
    require_programs(extras_of(arm))
    release = require_tool(KEYSTONE_TOOLS[arm.release], state_folder() / "tools")
    return replace(Tools.load(), keystone=release.parents[1])


def extras_of(arm: Arm) -> tuple[str, ...]:
    """Return the servers of an arm that a usual stack does not have."""
    return ("proxysql",) if arm.proxysql else ()


def services_of(arm: Arm) -> Sequence[Service]:
    """Return the servers that an arm needs, in the order they start."""
    needed = {service.name for service in NEEDED}
    names = {*needed, *extras_of(arm), cache_server(arm)}
    return [service for service in SERVICES if service.name in names]


def cache_server(arm: Arm) -> str:
    """Return the name of the service that holds an arm's cache."""
    return "redis" if arm.cache == "redis" else memcached.SERVICE.name


def options_of(arm: Arm, block: Mapping[str, str]) -> StackOptions:
    """Return how an arm's servers are started, with what a block sets."""
    return StackOptions(
        cache=arm.cache,
        processes=arm.processes,
        threads=arm.threads,
        module=arm.module,
        environment={
            "KEYLAG_SQL_COMMENT": "false",
            "PYTHONPATH": str(PLANS),
            **block,
            **as_variables(arm.keystone),
            **arm.environment,
        },
        extras=extras_of(arm),
        query_cache=arm.query_cache,
        mariadb={k: as_text(v) for k, v in {**QUIET_DATABASE, **arm.mariadb}.items()},
    )


def of_block(name: str, block: Block, otlp: str | None) -> dict[str, str]:
    """Return what all Keystones of a block have alike, and how metrics name them.

    Metrics go to the Collector at `otlp`, if there is one.
    """
    seed = {"PYTHONHASHSEED": str(block.hash_seed)}
    if otlp is None:
        return seed
    return seed | {
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp,
        "OTEL_RESOURCE_ATTRIBUTES": f"keylag.run={name},keylag.block={block.number}",
    }


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


def prepared_for(arm: Arm) -> InitialData:
    """Return the data that an arm starts from.

    The options of `[identity]` belong to it: they decide how passwords are hashed.
    """
    identity = arm.keystone.get("identity", {})
    said = [arm.users, arm.more_services, identity]
    more = "" if said == USUAL_CLOUD else f" {json.dumps(said, sort_keys=True)}"
    fill = partial(
        sample_cloud.populate_stack, users=arm.users, more_services=arm.more_services
    )
    return InitialData(sample_cloud.DATA_KEY + more, fill)


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
