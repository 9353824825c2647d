"""The `keylag-otel` command; `python -m keylag_otel` is the same."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from keylag_otel.auth_token.seams import SEAMS as AUTH_TOKEN_SEAMS
from keylag_otel.check import Finding, Report, check, installed_version
from keylag_otel.command_errors import EXIT_CODES_HELP, run_command
from keylag_otel.seam import Seam
from keylag_otel.seams import SEAMS
from keylag_otel.version import __version__

DESCRIPTION = "The part of Keylag that runs inside Keystone and the services."
CHECK = (
    "List the seams of this Keystone, or of this service, with the state of each. "
    "Run it with the interpreter of Keystone or the service. The exit code is 0 if "
    "every seam of this release is bound."
)

#: Seams by the distribution that they are in.
HOSTS = {"keystone": SEAMS, "keystonemiddleware": AUTH_TOKEN_SEAMS}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "keylag-otel", description=DESCRIPTION, epilog=EXIT_CODES_HELP
    )
    version = f"keylag-otel {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("check", help=CHECK, description=CHECK)
    command.add_argument("--output", choices=OUTPUTS, default="text")
    return parser


def _seams() -> Iterator[Seam]:
    # Without any host installed, report all seams as missing.
    found = [name for name in HOSTS if installed_version(name) is not None]
    for name in found or HOSTS:
        yield from HOSTS[name]


def _seam_line(finding: Finding) -> str:
    optional = " (optional)" if finding.optional else ""
    reason = f": {finding.reason}" if finding.reason else ""
    return f"  {finding.state:8} {finding.seam}{optional}{reason}"


def _format_text(report: Report) -> str:
    return "\n".join(_report_lines(report))


def _report_lines(report: Report) -> Iterator[str]:
    yield f"Python {report.python}, {sys.executable}"
    yield from (f"  {name} {v or '-'}" for name, v in report.versions.items())
    yield "Variables"
    yield from (f"  {name}={v}" for name, v in report.environment.items())
    yield "Seams"
    yield from map(_seam_line, report.seams)
    yield "Advice"
    yield from (f"  {each}" for each in report.advice)
    bound = sum(finding.state == "bound" for finding in report.seams)
    verdict = "OK" if report.ok else "NOT OK"
    yield f"{bound} of {len(report.seams)} seams bound; {verdict}."


def _format_json(report: Report) -> str:
    return json.dumps(report.as_dict(), indent=2)


OUTPUTS = {"text": _format_text, "json": _format_json}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the seams, print the report and return the exit code."""
    options = _parser().parse_args(arguments)
    return run_command(lambda: _check(options.output))


def _check(output: str) -> int:
    report = check(_seams())
    print(OUTPUTS[output](report))  # noqa: T201 - this is a command
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
