"""Write all that is generated: `python -m keylag_dashboards`.

A test compares the result with what is committed.
"""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from keylag_dashboards import render, rules
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import RUNBOOK_URL

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


def _absolute(url: str) -> str:
    """Return an address that a link in a notification can have."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        message = f"{url!r} is not absolute: begin with https:// and a host"
        raise ArgumentTypeError(message)
    return url


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m keylag_dashboards",
        description="Write the dashboards, the recording rules and the alerts.",
    )
    parser.add_argument(
        "--runbook-url",
        type=_absolute,
        default=RUNBOOK_URL,
        metavar="URL",
        help="where you publish docs/runbook.md; every alert links to it"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help="folder to write to (default: dashboards/generated)",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Write them."""
    chosen = _parser().parse_args(arguments)
    for path, text in files(chosen.runbook_url):
        (chosen.output / path).parent.mkdir(parents=True, exist_ok=True)
        (chosen.output / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
