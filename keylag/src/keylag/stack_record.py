"""Files of a stack folder: its record, its passwords and client credentials."""

import json
import secrets as random_text
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from keylag.services.base import Secrets, StackOptions
from keylag.services.keystone import REGION
from keylag.state import write_private

PASSWORD_BYTES = 18


def parse_options(data: Mapping[str, Any]) -> StackOptions:
    """Return options that were saved as JSON; raises TypeError for unknown names."""
    # JSON turns tuples into lists.
    return StackOptions(**{**data, "extras": tuple(data.get("extras", ()))})


@dataclass(frozen=True)
class StackRecord:
    """Ports, options and services of the last start of a stack."""

    ports: Mapping[str, int] = field(default_factory=dict)
    options: StackOptions = field(default_factory=StackOptions)
    services: tuple[str, ...] = ()
    """Names of the services; empty before the first start."""

    @classmethod
    def load(cls, folder: Path) -> "StackRecord":
        """Read the record of a stack folder; a missing or damaged one is empty."""
        try:
            data = json.loads((folder / "stack.json").read_text())
            options = parse_options(data["options"])
            return cls(data["ports"], options, tuple(data.get("services", ())))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def save(self, folder: Path) -> None:
        """Write the record to a stack folder; raises OSError."""
        write_private(folder / "stack.json", json.dumps(asdict(self), indent=2))


@dataclass(frozen=True)
class AdminCredentials:
    """Credentials of the administrator of a stack's Keystone."""

    auth_url: str
    """The URL with its path: http://127.0.0.1:port/v3."""
    password: str
    username: str = "admin"
    project_name: str = "admin"
    user_domain_id: str = "default"
    project_domain_id: str = "default"
    region_name: str = REGION


def load_secrets(data: Path) -> Secrets:
    """Return the passwords of a data folder; empty ones if it has none."""
    try:
        return Secrets(**json.loads((data / "secrets.json").read_text()))
    except (OSError, ValueError, TypeError):
        return Secrets()


def generate_secrets(data: Path) -> None:
    """Generate the passwords of a data folder in a file with mode 0600."""
    passwords = {
        f.name: random_text.token_urlsafe(PASSWORD_BYTES) for f in fields(Secrets)
    }
    write_private(data / "secrets.json", json.dumps(passwords))


def write_credentials(
    folder: Path,
    admin: AdminCredentials,
    extra_variables: Mapping[str, str] | None = None,
) -> None:
    """Write clouds.yaml and openrc, for the `openstack` command and the shell.

    openrc gets the `extra_variables` too.
    """
    auth = asdict(admin)
    region = auth.pop("region_name")
    cloud = {"auth": auth, "region_name": region, "identity_api_version": 3}
    # JSON is valid YAML.
    clouds = json.dumps({"clouds": {"keylag": cloud}}, indent=2)
    write_private(folder / "clouds.yaml", clouds + "\n")
    lines = [f"export OS_{name.upper()}='{value}'" for name, value in auth.items()]
    lines += [f"export OS_REGION_NAME='{region}'", "export OS_IDENTITY_API_VERSION=3"]
    lines += [
        f"export {name}='{value}'" for name, value in (extra_variables or {}).items()
    ]
    write_private(folder / "openrc", "\n".join(lines) + "\n")
