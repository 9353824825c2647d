"""What the folder of a laboratory keeps: its network and its link."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.state import write_output

FILE: Final = "wan.json"
NETEM: Final = "netem"
RELAY: Final = "relay"


@dataclass(frozen=True)
class Settings:
    """A network that runs."""

    hosts: int
    """Of each site."""
    mechanism: str
    """What delays the packets: NETEM or RELAY."""
    link: Link


def read_settings(folder: Path) -> Settings | None:
    """Return the settings of a folder; None if no network runs.  Raises LabError."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Settings(
            found["hosts"], found["mechanism"], Link.from_json(found["link"])
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged: {error}. `keylag lab wan down` removes the rest."
        raise LabError(message) from error


def read_link(folder: Path) -> Link:
    """Return the link of a network that runs; raises LabError."""
    settings = read_settings(folder)
    if settings is None:
        message = f"No network runs in {folder}. `keylag lab wan up` starts one."
        raise LabError(message)
    return settings.link


def write_settings(folder: Path, settings: Settings) -> None:
    """Replace the settings of a folder; raises OSError."""
    found = {
        "hosts": settings.hosts,
        "mechanism": settings.mechanism,
        "link": settings.link.as_json(),
    }
    write_output(folder / FILE, json.dumps(found, indent=2))


def forget_settings(folder: Path) -> None:
    """Delete the settings of a folder, if it has any; raises OSError."""
    (folder / FILE).unlink(missing_ok=True)
