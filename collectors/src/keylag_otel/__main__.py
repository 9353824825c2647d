"""The `keylag-otel` command; `python -m keylag_otel` is the same."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from keylag_otel.check import Finding, Report, check
from keylag_otel.seams import SEAMS

DESCRIPTION = "The part of Keylag that runs inside Keystone."
CHECK = (
    "Say which seams of this Keystone can be watched, and what is missing. "
    "Run it with Keystone's own interpreter. Ends with 0 if every seam that "
    "this release should have is bound."
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("keylag-otel", description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("check", help=CHECK, description=CHECK)
    command.add_argument("--output", choices=OUTPUTS, default="text")
    return parser


def _shown(finding: Finding) -> str:
    optional = " (optional)" if finding.optional else ""
    reason = f": {finding.reason}" if finding.reason else ""
    return f"  {finding.state:8} {finding.seam}{optional}{reason}"


def _text(report: Report) -> str:
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"Python {sys.version.split()[0]}, {sys.executable}"
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
    """Check, and print what was found."""
    options = _parser().parse_args(arguments)
    report = check(SEAMS)
    print(OUTPUTS[options.output](report))  # noqa: T201 - this is a command
    return 0 if report.in_order else 1


if __name__ == "__main__":
    sys.exit(main())
