"""Starts and stops a stack whose database is on chosen storage."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag import sample_cloud
from keylag.faults.changes.limited import WRITES, Limited
from keylag.faults.planting import take_back_before_stop
from keylag.faults.site import Site
from keylag.lab import iproute
from keylag.lab.storage import devices, fio
from keylag.lab.storage.devices import Device
from keylag.lab.storage.options import StorageOptions
from keylag.services import mariadb
from keylag.services.base import StackOptions
from keylag.stack import Stack
from keylag.stack_shutdown import stop_services, stop_stack
from keylag.state import check_path
from keylag.tools import Tools
from keylag.tools.programs import LABS_ADVICE, find_program

PROGRAMS: Final = (
    *("fio", "nbdkit", "nbdfuse", "fusermount3", "losetup", "mount", "umount"),
    *("mkfs.ext4", "mkfs.btrfs"),
)
MAKES: Final = "loop devices, file systems and control groups"
KEYSTONE: Final = {"OS_SECURITY_COMPLIANCE__LOCKOUT_FAILURE_ATTEMPTS": "1000000"}
"""Keystone counts log-ins that fail in the database, but locks no user."""
FLUSH: Final = "innodb_flush_log_at_trx_commit"
Report = Callable[[str], None]


@dataclass(frozen=True)
class StorageLab:
    """The laboratory of a folder."""

    folder: Path

    @property
    def stack_folder(self) -> Path:
        """The folder of Keystone and its servers."""
        return self.folder / "stack"

    @property
    def device(self) -> Path:
        """Where the file system of the device is mounted; else a usual folder."""
        return self.folder / "device"

    @property
    def _database(self) -> Path:
        """The database's files, on the disk or by a mount on the device."""
        return self.stack_folder / "data" / mariadb.SERVICE.name

    @property
    def _first_data(self) -> Path:
        """A copy of these files as they were before anything was measured."""
        return self.folder / "first-data"

    def options(self) -> StorageOptions:
        """Return the options of what runs; raises LabError if nothing does."""
        return StorageOptions.read(self.folder)

    def up(self, options: StorageOptions, report: Report) -> None:
        """Start a stack, and move its database to the storage.

        Raises the errors of the parts, and then stops what it started.
        """
        iproute.require_root(MAKES)
        options.check()
        check_path(self.folder)
        for program in PROGRAMS:
            find_program(program, LABS_ADVICE)
        self.down()
        try:
            self._stack(options).up(sample_cloud.initial_data())
            report("Keystone is up")
            stop_services(self.stack_folder, [mariadb.SERVICE])
            _copy(self._database, self._first_data)
            self.change(options)
        except BaseException:
            self.down()
            raise

    def change(self, options: StorageOptions) -> None:
        """Start the database anew on other storage, with the data of the first start.

        Raises LabError, StackError, FaultError or OSError; then no options are saved.
        """
        options.check()
        StorageOptions.forget(self.folder)
        stack = self._stack(options)
        stop_services(stack.folder, [mariadb.SERVICE])
        self._remove_device()
        if options.delays_seconds:
            self._place(options)
        else:
            _copy(self._first_data, self._database)
            fio.make_file(self.device)
        stack.restart(mariadb.SERVICE.name, "keystone", options=stack.options)
        if limit := self._limit(options):
            limit.apply(self._site())
        options.write(self.folder)

    def _limit(self, options: StorageOptions) -> Limited | None:
        writes = options.writes_per_second
        return Limited(mariadb.SERVICE.name, WRITES, writes) if writes else None

    def in_group(self) -> list[str]:
        """Return a command that runs another one in the database's control group.

        It is empty if no group limits the database.  Raises LabError.
        """
        limit = self._limit(self.options())
        return limit.command_in(self._site(), []) if limit else []

    def down(self) -> list[str]:
        """Stop everything, and delete the devices; data on the disk and logs stay.

        Returns the names of what was stopped.  Raises LabError or OSError, and
        FaultError if faults could not be taken back; then, too, all has stopped.
        """
        iproute.require_root(MAKES)
        try:
            take_back_before_stop(self.stack_folder)
        finally:
            stopped = stop_stack(self.stack_folder)
            self._remove_device()
            StorageOptions.forget(self.folder)
        return stopped

    def _place(self, options: StorageOptions) -> None:
        made = [
            Device(self.folder, number, delay)
            for number, delay in enumerate(options.delays_seconds)
        ]
        name = self._database.name

        def fill(target: Path) -> None:
            _copy(self._first_data, target / name)
            fio.make_file(target)

        devices.mount_filled(made, self.device, fill)
        iproute.run("mount", "--bind", str(self.device / name), str(self._database))

    def _remove_device(self) -> None:
        # A group that limits the database is empty once it has stopped.
        Limited(mariadb.SERVICE.name, WRITES, 0).undo(self._site())
        devices.remove_devices(self.folder)

    def _site(self) -> Site:
        return Site(self.stack_folder, Console(stderr=True))

    def _stack(self, options: StorageOptions) -> Stack:
        wanted = StackOptions(
            cache="memcache_pool",
            environment=KEYSTONE,
            mariadb={FLUSH: str(options.flush)},
        )
        return Stack(
            self.stack_folder, Tools.load(), wanted, console=Console(stderr=True)
        )


def _copy(source: Path, target: Path) -> None:
    """Copy a folder in place of another one; raises OSError."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
