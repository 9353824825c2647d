"""Switches levers on and off.

What a file of the kernel had before is in `levers.json` before it is changed, so that
`down`, or the next command after a crash, restores it.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final

from keylag.control_groups import ControlGroup
from keylag.disks import disk_number
from keylag.lab import iproute
from keylag.lab.iproute import LabError
from keylag.lab.neighbours.levers import (
    LEVERS,
    Change,
    Group,
    IoClass,
    KernelFile,
    Request,
)
from keylag.services.base import folder_digest
from keylag.state import write_output

FILE: Final = "levers.json"
NO_CLASS: Final = 0
"""The class of processes for which none was chosen."""
CHOSEN: Final = re.compile(r"\[(\S+)\]")
"""In a file that lists all choices, such as that of the scheduler."""


@dataclass(frozen=True)
class Switches:
    """The levers of a laboratory."""

    folder: Path
    """Of the laboratory."""
    disk: Path
    """The disk with the data of all, below /sys."""
    pids: Callable[[], Sequence[int]]
    """Returns the processes of the neighbours' databases that run."""
    record: dict[str, dict[str, str]] = field(default_factory=dict)
    """What files had before, by lever and path; a lever that is on has an entry."""

    @classmethod
    def load(
        cls, folder: Path, disk: Path, pids: Callable[[], Sequence[int]]
    ) -> "Switches":
        """Return the levers as a laboratory left them; raises LabError."""
        path = folder / FILE
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            record = {}
        except ValueError as error:
            message = (
                f"{path} is damaged: {error}. It names what to restore; then delete it."
            )
            raise LabError(message) from error
        return cls(folder, disk, pids, record)

    def switch_on(self, name: str) -> None:
        """Switch a lever on, also for databases that started since.

        If it cannot be switched on, nothing of it stays.  Raises LabError.
        """
        self.record.setdefault(name, {})
        self._save()
        try:
            for change in LEVERS[name].changes:
                self._make(name, change)
        except (OSError, LabError) as error:
            self.switch_off(name)
            message = (
                f"{name} could not be switched on: {error}. It needs root outside of "
                "containers, and a kernel with this setting."
            )
            raise LabError(message) from error

    def switch_off(self, name: str) -> None:
        """Take a lever back, if it is on; raises LabError if that is not possible."""
        if name not in self.record:
            return
        try:
            for change in reversed(LEVERS[name].changes):
                self._take_back(name, change)
        except (OSError, LabError) as error:
            before = "; ".join(
                f"{path}: {text}" for path, text in self.record[name].items()
            )
            message = (
                f"{name} could not be taken back: {error}. Run the command again as "
                f"root. Before, there was {before or 'no setting'}."
            )
            raise LabError(message) from error
        del self.record[name]
        self._save()

    def switch_to(self, names: Sequence[str]) -> None:
        """Switch exactly some levers on, and all others off.

        Raises LabError, before anything is changed if two of them exclude each other;
        and if some cannot be taken back, once all others are.
        """
        for one, other in combinations(names, 2):
            self._reject_conflict(one, other)
        self._switch_off_all([one for one in self.record if one not in names])
        for name in names:
            self.switch_on(name)

    def _switch_off_all(self, names: Sequence[str]) -> None:
        errors = []
        for name in reversed(names):
            try:
                self.switch_off(name)
            except LabError as error:
                errors.append(str(error))
        if errors:
            raise LabError("\n".join(errors))

    def renew(self) -> None:
        """Let databases that started since have what is on; raises LabError."""
        for name in list(self.record):
            self.switch_on(name)

    def _reject_conflict(self, one: str, other: str) -> None:
        shared = set(self._paths(one)) & set(self._paths(other))
        if one != other and shared:
            message = f"{one} and {other} both set {min(shared)}. Choose one of them."
            raise LabError(message)

    def _paths(self, name: str) -> Iterator[str]:
        for change in LEVERS[name].changes:
            if isinstance(change, KernelFile):
                yield self._path(change)

    def _path(self, change: KernelFile) -> str:
        return change.path.format(disk=self.disk)

    def _make(self, name: str, change: Change) -> None:
        match change:
            case KernelFile(_, text):
                path = self._path(change)
                if path not in self.record[name]:
                    self.record[name][path] = read_chosen(Path(path))
                    self._save()
                Path(path).write_text(text)
            case Request(path, text):
                Path(path).write_text(text)
            case Group():
                group = self._group(change)
                group.make()
                group.write(self._on_disk(group.setting.text))
                for pid in self.pids():
                    group.add(pid)
            case IoClass(number):
                self._set_class(number)

    def _take_back(self, name: str, change: Change) -> None:
        match change:
            case KernelFile():
                path = Path(self._path(change))
                before = self.record[name].get(str(path))
                # A scheduler's own settings end with it, as all do with a restart.
                if before is not None and path.exists():
                    path.write_text(before)
            case Group():
                group = self._group(change)
                if group.folder.exists():
                    group.write(self._on_disk(group.setting.default))
                    self._remove_unless_used(name, group)
            case IoClass():
                self._set_class(NO_CLASS)
            case Request():
                pass  # The kernel did it once, and has nothing to restore.

    def _remove_unless_used(self, name: str, group: ControlGroup) -> None:
        others = [
            self._group(change).folder
            for other in self.record
            for change in LEVERS[other].changes
            if other != name and isinstance(change, Group)
        ]
        if group.folder not in others and not group.remove():
            message = f"{group.folder} does not become empty"
            raise OSError(message)

    def _group(self, change: Group) -> ControlGroup:
        name = f"keylag-neighbours-{folder_digest(self.folder)}"
        return ControlGroup(name, change.versions)

    def _on_disk(self, text: str) -> str:
        return text.format(disk=disk_number(self.disk)) if "{disk}" in text else text

    def _set_class(self, number: int) -> None:
        # Each database is a process group of its own, with all of its threads.
        for pid in self.pids():
            words = ("ionice", "-c", str(number), "-P", str(pid))
            try:
                iproute.run(*words, advice="It is in Debian's package util-linux.")
            except LabError:
                # One that has ended meanwhile needs no class.
                if pid in self.pids():
                    raise

    def _save(self) -> None:
        path = self.folder / FILE
        if self.record:
            write_output(path, json.dumps(self.record, indent=2))
        else:
            path.unlink(missing_ok=True)


def read_chosen(path: Path) -> str:
    """Return what a file of the kernel has, or which of its choices; raises OSError."""
    text = path.read_text().strip()
    found = CHOSEN.search(text)
    return found[1] if found else text
