"""Settings of sources, from flags, environment variables and files."""

from __future__ import annotations

import os
import ssl
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keylag_exporters.model import Option, SourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_OPTION = Option("timeout", "Timeout of a read, in seconds.", float, 5.0)
PORT_LIMIT = 2**16
_BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("", "0", "false", "no", "off"), False),
}
INTERVAL_HELP = "Seconds between two reads; scrapes in between get the latest result."


class SettingsError(Exception):
    """A setting is missing or invalid; the message names it."""


def parse_port(text: Any) -> int:
    """Return a TCP port; raises ValueError for any other text."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number not in range(PORT_LIMIT):
        message = f"a port is a number below {PORT_LIMIT}, not {text}"
        raise ValueError(message)
    return number


def parse_count(text: Any) -> int:
    """Return a number of at least zero; raises ValueError for any other text."""
    number = int(text)
    if number < 0:
        message = "a count is not negative"
        raise ValueError(message)
    return number


def tls_context(ca_file: str | None) -> ssl.SSLContext | None:
    """Return a context that trusts the CAs of a file; None without a file.

    Raises SettingsError if the file cannot be read.
    """
    if not ca_file:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        message = f"tls-ca: cannot read {ca_file}: {error}"
        raise SettingsError(message) from error


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; brackets of an IPv6 address are removed."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def parse_address(text: str) -> str:
    """Return HOST:PORT or the path of a socket; raises ValueError otherwise."""
    if "/" not in text:
        parse_port(text.rpartition(":")[2])
    return text


def all_options(source_type: SourceType) -> tuple[Option, ...]:
    """Return a source's options, including those that all sources have."""
    interval = Option("interval", INTERVAL_HELP, float, source_type.interval)
    return (*source_type.options, interval, TIMEOUT_OPTION)


def setting_key(option: Option) -> str:
    """Return an option's key in files and settings."""
    return option.name.replace("-", "_")


def environment_variable(source_type: SourceType, option: Option) -> str:
    """Return the name of an option's environment variable."""
    return f"KEYLAG_{source_type.name}_{option.name}".replace("-", "_").upper()


def resolve_settings(
    source_type: SourceType, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all settings of a source, by setting key.

    A value comes from `given`, else from the environment, else from the default. A
    secret NAME comes from the file that NAME_file names, else from the environment.
    Raises SettingsError for unknown keys and invalid values.
    """
    # A secret is in a file or in the environment.
    known = {
        setting_key(one) + "_file" * one.secret for one in all_options(source_type)
    }
    unknown = sorted(set(given) - known)
    if unknown:
        message = f"{source_type.name}: unknown settings: {', '.join(unknown)}"
        raise SettingsError(message)
    return {
        setting_key(one): _value(source_type, one, given)
        for one in all_options(source_type)
    }


def _value(source_type: SourceType, option: Option, given: Mapping[str, Any]) -> Any:
    name = setting_key(option)
    if option.secret:
        return _secret(source_type, option, given.get(f"{name}_file"))
    raw = given.get(name)
    raw = (
        os.environ.get(environment_variable(source_type, option))
        if raw is None
        else raw
    )
    if raw is None:
        if option.required:
            message = (
                f"{source_type.name}: option {option.name} is required ({option.help})"
            )
            raise SettingsError(message)
        return option.default
    try:
        return _as_bool(raw) if option.type is bool else option.type(raw)
    except (AttributeError, TypeError, ValueError) as error:
        message = f"{source_type.name}: {option.name}: invalid value {raw!r}: {error}"
        raise SettingsError(message) from error


def _as_bool(raw: Any) -> bool:
    """Return a boolean, as TOML or the environment has it; raises ValueError."""
    found = _BOOLEANS.get(str(raw).lower())
    if found is None:
        message = "expected true or false"
        raise ValueError(message)
    return found


def _secret(source_type: SourceType, option: Option, file: str | None) -> str | None:
    file = file or os.environ.get(environment_variable(source_type, option) + "_FILE")
    if not file:
        return os.environ.get(environment_variable(source_type, option))
    try:
        return Path(file).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{source_type.name}: {option.name}-file: {error}"
        raise SettingsError(message) from error


def load_config_file(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sections of a TOML file, one per source.

    Raises SettingsError if the file is unreadable or has keys outside of sections.
    """
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"cannot read {path}: {error}"
        raise SettingsError(message) from error
    if not all(isinstance(section, dict) for section in content.values()):
        message = f"{path}: expected a [section] for each source"
        raise SettingsError(message)
    return {
        name: {key.replace("-", "_"): value for key, value in section.items()}
        for name, section in content.items()
    }
