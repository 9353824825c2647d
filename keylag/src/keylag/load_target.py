"""The target of a load: the stack of `keylag up`, or any Keystone by URL."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from keylag import run_environment, users_csv
from keylag.errors import WrongUsageError
from keylag.remote_engines import Engine, is_loopback
from keylag.sample_cloud import users_file
from keylag.services.keystone import CACHE_BACKENDS
from keylag.stack_info import StackInfo
from keylag.users_csv import COLUMNS

DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}

OPENRC_VARIABLES: Final[Mapping[str, str]] = {
    "service_username": "OS_USERNAME",
    "service_password": "OS_PASSWORD",
    "service_user_domain": "OS_USER_DOMAIN_NAME",
    "service_project": "OS_PROJECT_NAME",
    "service_project_domain": "OS_PROJECT_DOMAIN_NAME",
}
"""Properties of the service user, and the openrc variables that set them."""
ENGINE_PROPERTIES: Final = ("users_file", *OPENRC_VARIABLES)
"""Properties that an engine on another machine has itself."""
NO_SERVICE_MESSAGE: Final = (
    "The stack has no service to call. Start one with `keylag up --with service`, or "
    "name another one with --set target_host=HOST --set target_port=PORT."
)


class TargetError(WrongUsageError):
    """The target of a load is incomplete or invalid."""


@dataclass(frozen=True)
class LoadTarget:
    """A Keystone as properties of a load plan."""

    properties: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Facts for `keylag.run_environment`."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Properties that some plans need and this target lacks, each with a message."""


def from_stack(
    stack: StackInfo,
    users: Path | None = None,
    alternative: str = "give --url and --users",
) -> LoadTarget:
    """Return a stack as a target; `users` replaces the CSV file of its users.

    Raises StackDownError if its Keystone does not run, and TargetError for an
    invalid CSV file.
    """
    stack.require_keystone(alternative)
    admin = stack.admin()
    has_service = "service" in stack.options.extras
    return LoadTarget(
        {
            **split_url(stack.url("keystone")),
            **({"target_port": str(stack.port("service"))} if has_service else {}),
            "service_username": admin.username,
            "service_project": admin.project_name,
            **_users_property(users or users_file(stack)),
        },
        {"service_password": admin.password},
        {
            run_environment.CACHE_BACKEND: CACHE_BACKENDS[stack.options.cache],
            run_environment.PROCESSES: str(stack.options.processes),
            run_environment.THREADS: str(stack.options.threads),
        },
        {} if has_service else {"target_port": NO_SERVICE_MESSAGE},
    )


def for_engines(target: LoadTarget, engines: Sequence[Engine]) -> LoadTarget:
    """Return a target for engines, which have users and passwords themselves.

    Raises TargetError if an engine cannot reach the target.
    """
    host = target.properties["host"]
    far = [one for one in engines if not is_loopback(one.host)]
    if far and is_loopback(host):
        message = (
            f"The engine {far[0]} cannot reach a Keystone at {host}, which means the "
            "engine's own machine. Name the Keystone with --url."
        )
        raise TargetError(message)
    shared = {
        name: value
        for name, value in target.properties.items()
        if name not in ENGINE_PROPERTIES
    }
    return replace(target, properties=shared, secrets={})


def from_url(
    url: str, users: Path | None, env: Mapping[str, str] | None = None
) -> LoadTarget:
    """Return the Keystone at a URL; the OS_* variables of `env` name the service user.

    Raises TargetError for an invalid URL, or a missing or invalid CSV file.
    """
    if users is None:
        message = (
            "--url needs --users too: a CSV file of users with the columns "
            f"{','.join(COLUMNS)}."
        )
        raise TargetError(message)
    address = split_url(url)
    own = from_environment(users, env)
    return replace(own, properties={**address, **own.properties})


def from_environment(users: Path, env: Mapping[str, str] | None = None) -> LoadTarget:
    """Return a target without URL: the users, and the service user of `env`.

    Raises TargetError for a missing or invalid CSV file.
    """
    env = os.environ if env is None else env
    service = {name: env[key] for name, key in OPENRC_VARIABLES.items() if env.get(key)}
    password = service.pop("service_password", None)
    secrets = {"service_password": password} if password else {}
    return LoadTarget({**service, **_users_property(users)}, secrets)


def split_url(url: str) -> dict[str, str]:
    """Split a URL, with or without /v3, into properties of a plan.

    Raises TargetError for an invalid URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        host = parts.hostname or ""
    except (ValueError, KeyError):
        host, port = "", 0
    if not host:
        message = f"{url} is no URL of a Keystone. Use one like http://host:5000/v3."
        raise TargetError(message)
    return {
        "protocol": parts.scheme,
        "host": host,
        "port": str(port),
        "path_prefix": parts.path.rstrip("/").removesuffix("/v3"),
    }


def _users_property(path: Path) -> dict[str, str]:
    if mistake := users_csv.find_mistake(path):
        raise TargetError(mistake)
    return {"users_file": str(path.resolve())}
