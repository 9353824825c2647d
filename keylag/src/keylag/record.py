"""What a stack folder remembers: ports, options and passwords."""

import json
import secrets as random_text
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from keylag.services.base import Secrets, StackOptions
from keylag.services.keystone import REGION
from keylag.state import write_private

PASSWORD_BYTES = 18


@dataclass(frozen=True)
class Record:
    """What a stack was last started with."""

    ports: Mapping[str, int] = field(default_factory=dict)
    options: StackOptions = field(default_factory=StackOptions)
    services: tuple[str, ...] = ()
    """Their names; empty if it was never started."""

    @classmethod
    def load(cls, folder: Path) -> "Record":
        """Read it from a stack folder; empty if there is none, or not a whole one."""
        try:
            read = json.loads((folder / "stack.json").read_text())
            options = StackOptions(**read["options"])
            # JSON knows no tuples.
            options = replace(options, extras=tuple(options.extras))
            return cls(read["ports"], options, tuple(read.get("services", ())))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def save(self, folder: Path) -> None:
        """Write it to a stack folder."""
        write_private(folder / "stack.json", json.dumps(asdict(self), indent=2))


@dataclass(frozen=True)
class Admin:
    """The administrator of a stack's Keystone."""

    auth_url: str
    """With its path: http://127.0.0.1:port/v3."""
    password: str
    username: str = "admin"
    project_name: str = "admin"
    user_domain_id: str = "default"
    project_domain_id: str = "default"
    region_name: str = REGION


def load_secrets(data: Path) -> Secrets:
    """Return the passwords kept in a data folder; empty ones if there are none."""
    try:
        return Secrets(**json.loads((data / "secrets.json").read_text()))
    except (OSError, ValueError, TypeError):
        return Secrets()


def make_secrets(data: Path) -> None:
    """Generate the passwords of a new data folder, readable by the owner alone."""
    made = {f.name: random_text.token_urlsafe(PASSWORD_BYTES) for f in fields(Secrets)}
    write_private(data / "secrets.json", json.dumps(made))


def write_credentials(
    folder: Path, admin: Admin, more: Mapping[str, str] | None = None
) -> None:
    """Write clouds.yaml and openrc, for the `openstack` command and the shell.

    `more` are variables that only openrc has.
    """
    known = asdict(admin)
    region = known.pop("region_name")
    cloud = {"auth": known, "region_name": region, "identity_api_version": 3}
    # JSON is YAML as well.
    clouds = json.dumps({"clouds": {"keylag": cloud}}, indent=2)
    write_private(folder / "clouds.yaml", clouds + "\n")
    lines = [f"export OS_{name.upper()}='{value}'" for name, value in known.items()]
    lines += [f"export OS_REGION_NAME='{region}'", "export OS_IDENTITY_API_VERSION=3"]
    lines += [f"export {name}='{value}'" for name, value in (more or {}).items()]
    write_private(folder / "openrc", "\n".join(lines) + "\n")
