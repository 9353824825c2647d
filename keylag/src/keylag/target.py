"""Where a load goes: the stack that `keylag up` started, or any Keystone by URL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from keylag import options, users
from keylag.cloud import users_file
from keylag.errors import WrongUsageError
from keylag.services.keystone import CACHE_BACKENDS
from keylag.stack_folder import StackFolder
from keylag.users import COLUMNS

DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}

FROM_OPENRC: Final[Mapping[str, str]] = {
    "service_username": "OS_USERNAME",
    "service_password": "OS_PASSWORD",
    "service_user_domain": "OS_USER_DOMAIN_NAME",
    "service_project": "OS_PROJECT_NAME",
    "service_project_domain": "OS_PROJECT_DOMAIN_NAME",
}
"""The service user's properties and the usual variables that give them."""
NO_SERVICE: Final = (
    "The stack has no service to call. Start it with `keylag up --with service`, or "
    "say where another one is with --set target_host=HOST --set target_port=PORT."
)


class TargetError(WrongUsageError):
    """It is not known where to send the load; the text says what to give."""


@dataclass(frozen=True)
class Target:
    """A Keystone, as properties of a load plan."""

    properties: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    """What is known of it, for the report."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Properties that some plans need and this Keystone lacks, and what to do."""


def of_stack(stack: StackFolder, users: Path | None = None) -> Target:
    """Return a stack; raises StackDownError if its Keystone does not run."""
    stack.require_keystone("give --url and --users")
    admin = stack.admin()
    has_service = "service" in stack.options.extras
    return Target(
        {
            **address(stack.url("keystone")),
            **({"target_port": str(stack.port("service"))} if has_service else {}),
            "service_username": admin.username,
            "service_project": admin.project_name,
            **_users(users or users_file(stack)),
        },
        {"service_password": admin.password},
        {
            options.CACHE_BACKEND: CACHE_BACKENDS[stack.options.cache],
            options.PROCESSES: str(stack.options.processes),
            options.THREADS: str(stack.options.threads),
        },
        {} if has_service else {"target_port": NO_SERVICE},
    )


def of_url(
    url: str, users: Path | None, env: Mapping[str, str] | None = None
) -> Target:
    """Return a Keystone by URL, its service user from the OS_* variables of `env`."""
    if users is None:
        message = (
            "A Keystone given by --url needs --users, a CSV with the columns "
            f"{','.join(COLUMNS)}."
        )
        raise TargetError(message)
    env = os.environ if env is None else env
    service = {name: env[key] for name, key in FROM_OPENRC.items() if env.get(key)}
    password = service.pop("service_password", None)
    secrets = {"service_password": password} if password else {}
    return Target({**address(url), **service, **_users(users)}, secrets)


def address(url: str) -> dict[str, str]:
    """Split a URL, with or without /v3, into the plans' properties."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        host = parts.hostname or ""
    except (ValueError, KeyError):
        host, port = "", 0
    if not host:
        message = f"{url} is no URL of a Keystone; it looks like http://host:5000/v3."
        raise TargetError(message)
    return {
        "protocol": parts.scheme,
        "host": host,
        "port": str(port),
        "path_prefix": parts.path.rstrip("/").removesuffix("/v3"),
    }


def _users(path: Path) -> dict[str, str]:
    if wrong := users.mistake(path):
        raise TargetError(wrong)
    return {"users_file": str(path.resolve())}
