"""Translate the settings of an arm into a stack.

Each arm has its own Keystone, database and cache server, with a copy of its initial
data.  The stacks of all arms run at the same time; one arm at a time is under load.
The arms share only the machine, so that every setting of a plan, including variables
and contents of the database, affects one arm alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from keylag.experiment.schedule import Round
from keylag.experiment.settings import Arm, Scalar
from keylag.paths import DATA
from keylag.sample_cloud import CloudSize, initial_data
from keylag.services import SERVICES, keystone, mariadb, memcached, require_programs
from keylag.services.base import Service, StackOptions
from keylag.stack import InitialData, Stack
from keylag.stack_database import connect
from keylag.state import state_folder
from keylag.tools import Tools
from keylag.tools.install import require_tool
from keylag.tools.venvs import KEYSTONE_TOOLS

REQUIRED_SERVICES: Final = (mariadb.SERVICE, memcached.SERVICE, keystone.SERVICE)
PLANS_FOLDER: Final = DATA / "experiments"
"""The folder of plans, and of WSGI modules that an arm may use."""
MARIADB_DEFAULTS: Final = {"slow_query_log": "0"}
"""No slow log: other stacks log every statement, which costs time."""
INSERT_EVENTS: Final = """\
INSERT INTO revocation_event ({column}, issued_before, revoked_at)
SELECT LEFT(SHA2(CONCAT(seq, RAND()), 256), 22),
       UTC_TIMESTAMP() + INTERVAL 1 DAY, UTC_TIMESTAMP()
FROM seq_1_to_{number}"""
"""Inserts events like those of Keystone, for tokens that do not exist.

Keystone compares a token with events that came after it was issued.  The load's tokens
are issued after these, so they have a later time.
"""


def tools_for(arm: Arm) -> Tools:
    """Return the programs of an arm; raises ToolError if one is missing."""
    require_programs(optional_services(arm))
    release = require_tool(KEYSTONE_TOOLS[arm.release], state_folder() / "tools")
    return replace(Tools.load(collector=False), keystone=release.parents[1])


def optional_services(arm: Arm) -> tuple[str, ...]:
    """Return the names of the optional servers of an arm."""
    return ("proxysql",) if arm.proxysql else ()


def services_for(arm: Arm) -> Sequence[Service]:
    """Return the services of an arm, in start order."""
    needed = {service.name for service in REQUIRED_SERVICES}
    names = {*needed, *optional_services(arm), cache_service_name(arm)}
    return [service for service in SERVICES if service.name in names]


def cache_service_name(arm: Arm) -> str:
    """Return the name of the service that stores the cache of an arm."""
    return "redis" if arm.cache == "redis" else memcached.SERVICE.name


def stack_options(arm: Arm, round_variables: Mapping[str, str]) -> StackOptions:
    """Return the start options of an arm, with the environment of a round."""
    return StackOptions(
        cache=arm.cache,
        processes=arm.processes,
        threads=arm.threads,
        module=arm.module,
        environment={
            "KEYLAG_SQL_COMMENT": "false",
            "PYTHONPATH": str(PLANS_FOLDER),
            **round_variables,
            **oslo_config_variables(arm.keystone),
            **arm.environment,
        },
        extras=optional_services(arm),
        query_cache=arm.query_cache,
        mariadb={
            k: format_value(v) for k, v in {**MARIADB_DEFAULTS, **arm.mariadb}.items()
        },
    )


def round_environment(name: str, this_round: Round, otlp: str | None) -> dict[str, str]:
    """Return the environment of a Keystone in a round.

    It has the hash seed of the round and, with an `otlp` URL, the export of metrics to
    that Collector under the resource attributes keylag.run and keylag.round.
    """
    seed = {"PYTHONHASHSEED": str(this_round.hash_seed)}
    if otlp is None:
        return seed
    return seed | {
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp,
        "OTEL_RESOURCE_ATTRIBUTES": (
            f"keylag.run={name},keylag.round={this_round.number}"
        ),
    }


def oslo_config_variables(
    sections: Mapping[str, Mapping[str, Scalar]],
) -> dict[str, str]:
    """Return options of keystone.conf as environment variables of oslo.config."""
    return {
        f"OS_{section}__{option}".upper(): format_value(value)
        for section, options in sections.items()
        for option, value in options.items()
    }


def format_value(value: Scalar) -> str:
    """Format a value for oslo.config and MariaDB."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def initial_data_for(arm: Arm) -> InitialData:
    """Return the initial data of an arm.

    It depends on the options of `[identity]`, which decide how passwords are hashed.
    """
    identity = arm.keystone.get("identity", {})
    size = CloudSize(arm.users, more_services=arm.more_services)
    data = initial_data(size)
    more = f" {json.dumps(identity, sort_keys=True)}" if identity else ""
    return replace(data, key=data.key + more)


def make_stack(folder: Path, arm: Arm) -> Stack:
    """Return the stack of an arm, not started; raises ToolError without a program."""
    return Stack(
        folder,
        tools_for(arm),
        stack_options(arm, {}),
        initial_data=initial_data_for(arm),
        services=services_for(arm),
    )


def replace_revocation_events(stack: Stack, arm: Arm) -> None:
    """Replace the content of the revocation table by the events of the arm."""
    with (
        connect(stack.folder) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM revocation_event")
        if arm.revocation_events:
            cursor.execute(
                INSERT_EVENTS.format(
                    column=arm.revoked_by, number=arm.revocation_events
                )
            )
