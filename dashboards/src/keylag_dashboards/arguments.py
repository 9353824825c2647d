"""Command-line arguments of both commands."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from keylag_otel.command_errors import EXIT_CODES_HELP

PACKAGE: Final = "keylag-dashboards"


def absolute_url(url: str) -> str:
    """Return an absolute URL; raises ArgumentTypeError for any other text."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and parts.netloc and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        message = f"{url!r} is not an absolute URL: start with https:// and a host"
        raise ArgumentTypeError(message)
    return url


def duration(text: str) -> str:
    """Return a duration of Prometheus; raises ArgumentTypeError for any other text."""
    if not re.fullmatch(r"[1-9][0-9]*[smh]", text):
        message = f"{text!r} is not a duration: write 90s, 5m or 1h"
        raise ArgumentTypeError(message)
    return text


def make_parser(module: str, description: str) -> ArgumentParser:
    """Return the parser of a command that runs as `python -m MODULE`."""
    parser = ArgumentParser(
        prog=f"python -m {module}", description=description, epilog=EXIT_CODES_HELP
    )
    shown = f"{PACKAGE} {version(PACKAGE)}"
    parser.add_argument("--version", action="version", version=shown)
    return parser
