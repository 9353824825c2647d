"""The `keylag-otel` command; `python -m keylag_otel` is the same."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from keylag_otel.auth_token.seams import SEAMS as AUTH_TOKEN_SEAMS
from keylag_otel.check import Finding, Report, check, installed
from keylag_otel.command_errors import CODES, ended
from keylag_otel.seam import Seam
from keylag_otel.seams import SEAMS
from keylag_otel.version import __version__

DESCRIPTION = "The part of Keylag that runs inside Keystone and the services."
CHECK = (
    "Say which seams of this Keystone, or of this service, can be watched, and "
    "what is missing. Run it with its own interpreter. Ends with 0 if every seam "
    "that this release should have is bound."
)

#: Distribution to what is watched where it is installed.
HOSTS = {"keystone": SEAMS, "keystonemiddleware": AUTH_TOKEN_SEAMS}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "keylag-otel", description=DESCRIPTION, epilog=CODES
    )
    version = f"keylag-otel {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("check", help=CHECK, description=CHECK)
    command.add_argument("--output", choices=OUTPUTS, default="text")
    return parser


def _seams() -> Iterator[Seam]:
    """Yield what is watched of the hosts that are here; of all if none is."""
    here = [name for name in HOSTS if installed(name) is not None]
    for name in here or HOSTS:
        yield from HOSTS[name]


def _shown(finding: Finding) -> str:
    optional = " (optional)" if finding.optional else ""
    reason = f": {finding.reason}" if finding.reason else ""
    return f"  {finding.state:8} {finding.seam}{optional}{reason}"


def _text(report: Report) -> str:
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"Python {report.python}, {sys.executable}"
    yield from (f"  {name} {v or '-'}" for name, v in report.versions.items())
    yield "Variables"
    yield from (f"  {name}={v}" for name, v in report.environment.items())
    yield "Seams"
    yield from map(_shown, report.seams)
    yield "What to know"
    yield from (f"  {each}" for each in report.advice)
    bound = sum(finding.state == "bound" for finding in report.seams)
    verdict = "in order" if report.in_order else "NOT in order"
    yield f"{bound} of {len(report.seams)} seams bound; {verdict}."


def _json(report: Report) -> str:
    return json.dumps(report.as_dict(), indent=2)


OUTPUTS = {"text": _text, "json": _json}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, and print what was found; return the exit code."""
    options = _parser().parse_args(arguments)
    return ended(lambda: _check(options.output))


def _check(output: str) -> int:
    report = check(_seams())
    print(OUTPUTS[output](report))  # noqa: T201 - this is a command
    return 0 if report.in_order else 1


if __name__ == "__main__":
    sys.exit(main())
