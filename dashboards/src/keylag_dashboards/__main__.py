"""Write all that is generated: `python -m keylag_dashboards`.

A test compares the result with what is committed.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from keylag_dashboards import render, rules
from keylag_dashboards.arguments import absolute, parser
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import RUNBOOK_URL
from keylag_otel.command_errors import run_command

FOLDER: Final = Path(__file__).parents[2] / "generated"
_MADE: Final = "# Made by `python -m keylag_dashboards`; change the tables instead.\n"


def files(runbook_url: str = RUNBOOK_URL) -> Iterator[tuple[Path, str]]:
    """Yield every generated file: its path below the folder, and its text."""
    for board in BOARDS:
        name = f"{board.name}.json"
        yield Path("provisioned") / name, _json(render.provisioned(board))
        yield Path("import") / name, _json(render.for_import(board))
    yield Path("rules") / "keylag.yml", _yaml(rules.document(runbook_url))


def _json(made: dict[str, Any]) -> str:
    return json.dumps(made, indent=2) + "\n"


def _yaml(made: dict[str, Any]) -> str:
    return _MADE + yaml.safe_dump(made, sort_keys=False, width=88)


def _parser() -> ArgumentParser:
    made = parser(
        "keylag_dashboards", "Write the dashboards, the recording rules and the alerts."
    )
    made.add_argument(
        "--runbook-url",
        type=absolute,
        default=RUNBOOK_URL,
        metavar="URL",
        help="where you publish docs/runbook.md; every alert links to it"
        " (default: %(default)s)",
    )
    made.add_argument(
        "--output",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help="folder to write to (default: dashboards/generated)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Write them; return the exit code."""
    chosen = _parser().parse_args(arguments)
    return run_command(lambda: _write(chosen.output, chosen.runbook_url))


def _write(folder: Path, runbook_url: str) -> int:
    for path, text in files(runbook_url):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
