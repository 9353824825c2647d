"""Control groups of the kernel: limits and weights of processes, in both versions.

Version 1 has a tree for each controller, version 2 one for all.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

CGROUPS: Final = Path("/sys/fs/cgroup")
OWN_GROUPS: Final = Path("/proc/self/cgroup")
PROCESSES: Final = "cgroup.procs"
ROUNDS: Final = 20


class Setting(NamedTuple):
    """A controller of the kernel, and the file and text of its limit or weight."""

    controller: str
    file: str
    text: str
    default: str = ""
    """The text that takes it back, where the group outlives the setting."""


Versions = tuple[Setting, Setting]
"""A setting in version 1, and in version 2."""


@dataclass(frozen=True)
class ControlGroup:
    """A group of a controller; what leaves it returns to the group of this process."""

    name: str
    versions: Versions

    @property
    def setting(self) -> Setting:
        """The setting in the version of this machine."""
        return self.versions[0 if self._is_first_version else 1]

    @property
    def folder(self) -> Path:
        """Its folder, which need not exist."""
        return self._groups / self.name

    def make(self) -> None:
        """Make the group, if it does not exist; raises OSError.

        In version 2, its controller stays enabled for groups; that limits nothing.
        """
        if not self._is_first_version:
            _enable(self.setting.controller)
        self.folder.mkdir(exist_ok=True)

    def write(self, text: str) -> None:
        """Write to the file of the setting; raises OSError."""
        (self.folder / self.setting.file).write_text(text)

    def add(self, pid: int) -> None:
        """Move a process to the group, unless it has ended; raises OSError."""
        _add(self.folder, pid)

    def command_in(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one in the group."""
        processes = str(self.folder / PROCESSES)
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', processes, *command]

    def remove(self) -> bool:
        """Move all processes out, and delete the group; raises OSError.

        Returns False if new processes keep it busy.
        """
        for _ in range(ROUNDS):
            if not self.folder.exists():
                return True
            for pid in (self.folder / PROCESSES).read_text().split():
                _add(self._own_group, int(pid))
            # A process may have started another one meanwhile.
            with suppress(OSError):
                self.folder.rmdir()
        return False

    @property
    def _tree(self) -> Path:
        """The tree of the controller in version 1."""
        return CGROUPS / self.versions[0].controller

    @property
    def _is_first_version(self) -> bool:
        return self._tree.exists()

    @property
    def _groups(self) -> Path:
        return self._tree if self._is_first_version else CGROUPS

    @property
    def _own_group(self) -> Path:
        """The group of this process; in a container that is the tree itself."""
        controller = self._tree.name if self._is_first_version else ""
        for line in OWN_GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", maxsplit=2)
            own = self._groups / path.lstrip("/")
            if controller in controllers.split(",") and own.exists():
                return own
        return self._groups


def _add(group: Path, pid: int) -> None:
    with suppress(ProcessLookupError):
        (group / PROCESSES).write_text(str(pid))


def _enable(controller: str) -> None:
    """Let the groups of version 2 have a controller; raises OSError."""
    enabled = CGROUPS / "cgroup.subtree_control"
    if controller not in enabled.read_text().split():
        enabled.write_text(f"+{controller}")
