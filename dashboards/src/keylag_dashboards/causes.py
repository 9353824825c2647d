"""The causes that `keylag diagnose` names, and the metrics that it serves of them.

`python -m keylag_dev.causes_page` makes causes.json from the registry of rules, so that
this package does not need the command.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("causes.json")


@dataclass(frozen=True)
class Cause:
    """A cause of slow token calls."""

    id: str
    name: str
    cause: str
    """A sentence."""

    @property
    def title(self) -> str:
        """Return id and name: `C2 cache-server-hung`."""
        return f"{self.id} {self.name}"


_CONTENT: Final[Any] = json.loads(FILE.read_text(encoding="utf-8"))
CAUSES: Final[Mapping[str, Cause]] = {
    one["id"]: Cause(**one) for one in _CONTENT["causes"]
}
"""All causes by id."""
METRICS: Final[Mapping[str, str]] = _CONTENT["metrics"]
"""Names of the metrics: `cost`, `known` and `success`."""


def list_titles(ids: tuple[str, ...]) -> str:
    """Return ids and names of causes: `C2 cache-server-hung, C4 cache-far`."""
    return ", ".join(CAUSES[one].title for one in ids)
