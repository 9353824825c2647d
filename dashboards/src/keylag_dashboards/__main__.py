"""Write all that is generated: `python -m keylag_dashboards`.

A test compares the result with what is committed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from keylag_dashboards import render, rules
from keylag_dashboards.boards import BOARDS

FOLDER: Final = Path(__file__).parents[2] / "generated"
_MADE: Final = "# Made by `python -m keylag_dashboards`; change the tables instead.\n"


def files() -> Iterator[tuple[Path, str]]:
    """Yield every generated file: its path below the folder, and its text."""
    for board in BOARDS:
        name = f"{board.name}.json"
        yield Path("provisioned") / name, _json(render.provisioned(board))
        yield Path("import") / name, _json(render.for_import(board))
    yield Path("rules") / "keylag.yml", _yaml(rules.document())


def _json(made: dict[str, Any]) -> str:
    return json.dumps(made, indent=2) + "\n"


def _yaml(made: dict[str, Any]) -> str:
    return _MADE + yaml.safe_dump(made, sort_keys=False, width=88)


def main() -> None:
    """Write them."""
    for path, text in files():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
