"""A limit of a server's CPU time, or of its writes to disk, by a control group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from keylag.control_groups import ControlGroup, Setting, Versions
from keylag.disks import NoDiskError, disk_number, find_disk
from keylag.faults.model import FaultError
from keylag.services.base import folder_digest

if TYPE_CHECKING:
    from keylag.faults.site import Site

PERIOD_US: Final = 100_000
WRITES: Final = "writes per second"
CPU: Final = "µs of CPU time in 0.1 s"
SETTINGS: Final[Mapping[str, Versions]] = {
    WRITES: (
        Setting("blkio", "blkio.throttle.write_iops_device", "{disk} {amount}"),
        Setting("io", "io.max", "{disk} wiops={amount}"),
    ),
    CPU: (
        Setting("cpu", "cpu.cfs_quota_us", "{amount}"),
        Setting("cpu", "cpu.max", f"{{amount}} {PERIOD_US}"),
    ),
}
"""By resource."""


@dataclass(frozen=True)
class Limited:
    """A server in a control group that limits a resource."""

    service: str
    resource: str
    """A key of SETTINGS, which is the unit of the amount."""
    amount: int

    def apply(self, site: "Site") -> None:
        """Move the server to a group with the limit; raises FaultError."""
        group = self._group(site)
        setting = group.setting
        try:
            group.make()
            on_disk = "{disk}" in setting.text
            files = site.folder / "data" / self.service
            disk = disk_number(find_disk(files)) if on_disk else ""
            group.write(setting.text.format(disk=disk, amount=self.amount))
            for one in site.processes(self.service):
                group.add(one.process.pid)
        except (OSError, NoDiskError) as error:
            message = (
                f"No control group could limit {self.service}. It needs root outside "
                f"of containers, and {setting.controller} in {group.folder.parent}: "
                f"{error}"
            )
            raise FaultError(message) from error

    def undo(self, site: "Site") -> None:
        """Move the server to the group of this process; delete the one with a limit.

        Raises FaultError if new processes keep it busy.
        """
        group = self._group(site)
        if not group.remove():
            message = (
                f"{group.folder} does not become empty. Run `keylag fault stop` again."
            )
            raise FaultError(message)

    def command_in(self, site: "Site", command: Sequence[str]) -> list[str]:
        """Return a command that runs another one in the group with the limit."""
        return self._group(site).command_in(command)

    def _group(self, site: "Site") -> ControlGroup:
        name = f"keylag-{self.service}-{folder_digest(site.folder)}"
        return ControlGroup(name, SETTINGS[self.resource])
