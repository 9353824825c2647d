"""Settings of the sources: from flags, the environment, files; checked at once."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keylag_exporters.model import Kind, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT = Option(
    "timeout", "Seconds that a scrape of this source may take.", float, 5.0
)
MOST_PORTS = 2**16
INTERVAL_HELP = "Seconds between two readings; scrapes in between get the latest."


class SettingsError(Exception):
    """A setting is missing or cannot be used; the message says which."""


def port(text: Any) -> int:
    """Return a TCP port; raises ValueError for what is none."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number not in range(MOST_PORTS):
        message = f"a port is a number below {MOST_PORTS}, not {text}"
        raise ValueError(message)
    return number


def address(text: str) -> str:
    """Return HOST:PORT, or the path of a socket; raises ValueError for neither."""
    if "/" not in text:
        port(text.rpartition(":")[2])
    return text


def options_of(kind: Kind) -> tuple[Option, ...]:
    """Return a source's options, with those that all sources have."""
    interval = Option("interval", INTERVAL_HELP, float, kind.interval)
    return (*kind.options, interval, TIMEOUT)


def parameter(option: Option) -> str:
    """Return an option's name as a key."""
    return option.name.replace("-", "_")


def variable(kind: Kind, option: Option) -> str:
    """Return the environment variable of an option."""
    return f"KEYLAG_{kind.name}_{option.name}".replace("-", "_").upper()


def complete(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a source: given, or from the environment, or default.

    A secret NAME comes from the file that NAME_file says, or from the environment.
    """
    known = {parameter(one) for one in options_of(kind)}
    known |= {f"{parameter(one)}_file" for one in kind.options if one.secret}
    unknown = sorted(set(given) - known)
    if unknown:
        message = f"{kind.name}: unknown settings: {', '.join(unknown)}"
        raise SettingsError(message)
    return {parameter(one): _value(kind, one, given) for one in options_of(kind)}


def _value(kind: Kind, option: Option, given: Mapping[str, Any]) -> Any:
    """Return one setting."""
    name = parameter(option)
    if option.secret:
        return _secret(kind, option, given.get(f"{name}_file"))
    raw = given.get(name)
    raw = os.environ.get(variable(kind, option)) if raw is None else raw
    if raw is None:
        if option.required:
            message = f"{kind.name}: {option.name} is needed ({option.help})"
            raise SettingsError(message)
        return option.default
    try:
        return _as_bool(raw) if option.type is bool else option.type(raw)
    except ValueError as error:
        message = f"{kind.name}: {option.name}: {raw!r} cannot be used: {error}"
        raise SettingsError(message) from error


def _as_bool(raw: Any) -> bool:
    """Return a yes or no as it is written in the environment."""
    return raw if isinstance(raw, bool) else raw.lower() in ("1", "true", "yes", "on")


def _secret(kind: Kind, option: Option, file: str | None) -> str | None:
    """Return a secret from its file or the environment."""
    file = file or os.environ.get(variable(kind, option) + "_FILE")
    if not file:
        return os.environ.get(variable(kind, option))
    try:
        return Path(file).read_text().rstrip("\r\n")
    except OSError as error:
        message = f"{kind.name}: {option.name}-file: {error}"
        raise SettingsError(message) from error


def from_file(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sections of a configuration file, a section for each source."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        message = f"cannot read {path}: {error}"
        raise SettingsError(message) from error
    if not all(isinstance(section, dict) for section in content.values()):
        message = f"{path}: a [section] for each source is expected"
        raise SettingsError(message)
    return {
        name: {key.replace("-", "_"): value for key, value in section.items()}
        for name, section in content.items()
    }
