"""The journal of a stack: its planted faults, and each change before it is made."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from keylag.faults.changes import KINDS
from keylag.faults.model import Change, Fault, FaultError
from keylag.services.base import StackOptions
from keylag.stack_record import parse_options
from keylag.state import write_private

FILE = "faults.json"


@dataclass
class Entry:
    """A change in the journal."""

    kind: str
    fields: dict[str, Any]
    undoing: bool = False
    """Whether it is being taken back."""

    def change(self) -> Change:
        """Return the change."""
        return KINDS[self.kind](**self.fields)


@dataclass
class PlantedFault:
    """A fault in the journal."""

    key: str
    strength: float
    since: float
    """Unix time."""
    entries: list[Entry] = field(default_factory=list)
    complete: bool = False
    """Whether all of its changes were made."""


class Journal:
    """The planted faults of a stack, in the order they were planted."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.base: StackOptions | None = None
        """The options of the stack before the first fault."""
        self.planted: list[PlantedFault] = []
        self._load()

    def _load(self) -> None:
        if not self.path.exists():
            return
        try:
            self._parse(json.loads(self.path.read_text()))
        except (KeyError, TypeError, ValueError) as error:
            message = (
                f"{self.path} is damaged, or of another version of Keylag: {error!r}."
                " Use that version, or delete the folder of the stack."
            )
            raise FaultError(message) from error

    def _parse(self, data: dict[str, Any]) -> None:
        if data["base"] is not None:
            self.base = parse_options(data["base"])
        self.planted = [
            PlantedFault(**{**one, "entries": [Entry(**e) for e in one["entries"]]})
            for one in data["planted"]
        ]
        list(self.changes())  # one may be of an unknown kind

    def save(self) -> None:
        """Write the journal; without faults there is none.  Raises OSError."""
        if not self.planted:
            self.base = None
            self.path.unlink(missing_ok=True)
            return
        data = {
            "base": asdict(self.base) if self.base else None,
            "planted": [asdict(one) for one in self.planted],
        }
        write_private(self.path, json.dumps(data, indent=2))

    def find(self, key: str) -> PlantedFault | None:
        """Return a planted fault; None if it is not planted."""
        return next((one for one in self.planted if one.key == key), None)

    def begin(self, fault: Fault, strength: float, since: float) -> PlantedFault:
        """Add a fault without changes."""
        planted = PlantedFault(fault.key, strength, since)
        self.planted.append(planted)
        self.save()
        return planted

    def add(self, planted: PlantedFault, change: Change) -> None:
        """Add a change to a fault."""
        kind = type(change).__name__
        planted.entries.append(Entry(kind, asdict(change)))  # type: ignore[call-overload]
        self.save()

    def changes(self) -> Iterator[Change]:
        """Return the changes in their order, without those being taken back."""
        for one in self.planted:
            yield from (entry.change() for entry in one.entries if not entry.undoing)
