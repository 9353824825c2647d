"""A limit of a server's CPU time, or of its writes to disk, by a control group."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from keylag.faults.model import FaultError
from keylag.services.base import folder_digest

if TYPE_CHECKING:
    from keylag.faults.site import Site

CGROUPS: Final = Path("/sys/fs/cgroup")
OWN_GROUPS: Final = Path("/proc/self/cgroup")
BLOCK_DEVICES: Final = Path("/sys/dev/block")
PROCESSES: Final = "cgroup.procs"
PERIOD_US: Final = 100_000
ROUNDS: Final = 20


class Setting(NamedTuple):
    """A controller of the kernel, and the file and text of its limit."""

    controller: str
    file: str
    text: str


WRITES: Final = "writes per second"
CPU: Final = "µs of CPU time in 0.1 s"
SETTINGS: Final[Mapping[str, tuple[Setting, Setting]]] = {
    WRITES: (
        Setting("blkio", "blkio.throttle.write_iops_device", "{disk} {amount}"),
        Setting("io", "io.max", "{disk} wiops={amount}"),
    ),
    CPU: (
        Setting("cpu", "cpu.cfs_quota_us", "{amount}"),
        Setting("cpu", "cpu.max", f"{{amount}} {PERIOD_US}"),
    ),
}
"""By resource, for both versions of control groups.

Version 1 has a tree for each controller, version 2 one for all.
"""


@dataclass(frozen=True)
class Limited:
    """A server in a control group that limits a resource."""

    service: str
    resource: str
    """A key of SETTINGS, which is the unit of the amount."""
    amount: int

    def apply(self, site: "Site") -> None:
        """Move the server to a group with the limit; raises FaultError."""
        first, second = SETTINGS[self.resource]
        setting = first if self._is_first_version else second
        group = self._group(site)
        try:
            if not self._is_first_version:
                _enable(setting.controller)
            group.mkdir(exist_ok=True)
            files = site.folder / "data" / self.service
            disk = find_disk(files) if "{disk}" in setting.text else ""
            limit = setting.text.format(disk=disk, amount=self.amount)
            (group / setting.file).write_text(limit)
            for one in site.processes(self.service):
                _add(group, one.process.pid)
        except OSError as error:
            message = (
                f"No control group could limit {self.service}. It needs root outside "
                f"of containers, and {setting.controller} in {group.parent}: {error}"
            )
            raise FaultError(message) from error

    def undo(self, site: "Site") -> None:
        """Move the server to the group of this process; delete the one with a limit.

        Raises FaultError if new processes keep it busy.
        """
        group = self._group(site)
        for _ in range(ROUNDS):
            if not group.exists():
                return
            for pid in (group / PROCESSES).read_text().split():
                _add(self._own_group, int(pid))
            # A process may have started another one meanwhile.
            with suppress(OSError):
                group.rmdir()
        message = f"{group} does not become empty. Run `keylag fault stop` again."
        raise FaultError(message)

    def command_in(self, site: "Site", command: Sequence[str]) -> list[str]:
        """Return a command that runs another one in the group with the limit."""
        group = str(self._group(site) / PROCESSES)
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', group, *command]

    @property
    def _tree(self) -> Path:
        """The tree of the controller in version 1."""
        return CGROUPS / SETTINGS[self.resource][0].controller

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

    def _group(self, site: "Site") -> Path:
        name = f"keylag-{self.service}-{folder_digest(site.folder)}"
        return self._groups / name


def _add(group: Path, pid: int) -> None:
    """Move a process to a group, unless it has ended."""
    with suppress(ProcessLookupError):
        (group / PROCESSES).write_text(str(pid))


def _enable(controller: str) -> None:
    """Let the groups of version 2 have a controller; raises OSError."""
    enabled = CGROUPS / "cgroup.subtree_control"
    if controller not in enabled.read_text().split():
        enabled.write_text(f"+{controller}")


def find_disk(folder: Path) -> str:
    """Return MAJOR:MINOR of the whole disk with a folder; raises FaultError."""
    device = folder.stat().st_dev
    place = BLOCK_DEVICES / f"{os.major(device)}:{os.minor(device)}"
    if not place.exists():
        message = f"{folder} is on no block device, whose writes could be limited."
        raise FaultError(message)
    found = place.resolve()
    whole = found.parent if (found / "partition").exists() else found
    return (whole / "dev").read_text().strip()
