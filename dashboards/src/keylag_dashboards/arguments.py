"""What the commands take."""

from argparse import ArgumentParser, ArgumentTypeError
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from keylag_otel.command_errors import EXIT_CODES_HELP

PACKAGE: Final = "keylag-dashboards"


def absolute(url: str) -> str:
    """Return an address with a scheme, a host and no impossible port."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and parts.netloc and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        message = f"{url!r} is not absolute: begin with https:// and a host"
        raise ArgumentTypeError(message)
    return url


def parser(module: str, description: str) -> ArgumentParser:
    """Return the parser of a command that is run as a module."""
    made = ArgumentParser(
        prog=f"python -m {module}", description=description, epilog=EXIT_CODES_HELP
    )
    shown = f"{PACKAGE} {version(PACKAGE)}"
    made.add_argument("--version", action="version", version=shown)
    return made
