"""Starts and stops Keystone and its neighbours, all on one disk."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag.disks import find_disk
from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import initial_data_for, oslo_config_variables
from keylag.lab.neighbours.cassandra import Cassandra, launcher
from keylag.lab.neighbours.options import NeighbourOptions
from keylag.lab.neighbours.switches import Switches
from keylag.lab.neighbours.ycsb import Ycsb
from keylag.sample_cloud import revoke_tokens
from keylag.services import (
    exporters,
    grafana,
    installed_services,
    keystone,
    mariadb,
    memcached,
    otel_collector,
    prometheus,
)
from keylag.services.base import StackOptions
from keylag.stack import Stack
from keylag.stack_database import connect
from keylag.stack_shutdown import stop_services, stop_stack
from keylag.state import check_path
from keylag.tools import Tools

MONITORING: Final = (
    otel_collector.SERVICE,
    prometheus.SERVICE,
    exporters.SERVICE,
    grafana.SERVICE,
)
SERVICES: Final = (
    mariadb.SERVICE,
    memcached.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    keystone.SERVICE,
    exporters.SERVICE,
    grafana.SERVICE,
)
"""In start order."""
TENANTS: Final = (1, 2, 3)
"""The numbers of those that may run: three at most, as in the 2014 paper."""

FIRST_EVENTS: Final = 8
"""Revocation events of the calls that warm Keystone up."""

Report = Callable[[str], None]
"""Receives a sentence about each step."""


@dataclass(frozen=True)
class Neighbours:
    """The laboratory of a folder."""

    folder: Path

    @property
    def stack(self) -> Path:
        """The folder of the stack with Keystone."""
        return self.folder / "stack"

    @property
    def running(self) -> list[int]:
        """The numbers of the tenants whose database runs."""
        return [number for number in TENANTS if self.database(number).pids()]

    def database(self, number: int) -> Cassandra:
        """Return the database of a tenant, which may run or not."""
        return Cassandra(self.folder, number)

    def client(self, number: int) -> Ycsb:
        """Return the client of a tenant, which may run or not."""
        return Ycsb(self.folder, self.database(number))

    def switches(self) -> Switches:
        """Return the levers; raises LabError or NoDiskError."""
        return Switches.load(self.folder, find_disk(self.folder), self._database_pids)

    def _database_pids(self) -> list[int]:
        return [pid for number in TENANTS for pid in self.database(number).pids()]

    def options(self) -> NeighbourOptions:
        """Return the settings of the neighbours; raises LabError if nothing runs."""
        return NeighbourOptions.read(self.folder)

    def up(self, options: NeighbourOptions, report: Report) -> None:
        """Start Keystone and its neighbours, with all levers off.

        Keystone and databases that run keep running.  Raises the errors of the parts,
        and then stops everything.
        """
        check_path(self.folder)
        launcher()
        self.folder.mkdir(parents=True, exist_ok=True)
        find_disk(self.folder)
        try:
            self.switches().switch_to(())
            self._start_stack(options)
            self.set_neighbours(options, report)
        except BaseException:
            self.down()
            raise

    def _start_stack(self, options: NeighbourOptions) -> None:
        identity = {"password_hash_rounds": options.password_hash_rounds}
        if not options.monitored:
            stop_services(self.stack.resolve(), MONITORING)
        services = [
            service
            for service in SERVICES
            if options.monitored or service not in MONITORING
        ]
        arm = Arm(cache="memcache_pool", keystone={"identity": identity})
        stack = Stack(
            self.stack,
            Tools.load(),
            StackOptions(arm.cache, environment=oslo_config_variables(arm.keystone)),
            initial_data=initial_data_for(arm),
            console=Console(stderr=True),
            services=installed_services(services),
        )
        stack.up()
        # The first calls of each worker load what later ones find.
        self.delete_events()
        revoke_tokens(stack, FIRST_EVENTS)

    def delete_events(self) -> None:
        """Delete Keystone's revocation events: their number slows validations.

        Raises pymysql.MySQLError.
        """
        with closing(connect(self.stack)) as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM revocation_event")

    def set_neighbours(self, options: NeighbourOptions, report: Report) -> None:
        """Let so many tenants run, each at its rate; levers hold for new ones too.

        A tenant that does not start is stopped.  Raises the errors of the parts.
        """
        options.write(self.folder)
        for number in reversed(TENANTS[options.tenants :]):
            self._stop_tenant(number)
        for number in TENANTS[: options.tenants]:
            try:
                self.database(number).start()
                self.switches().renew()
                self.client(number).start(options)
            except BaseException:
                self._stop_tenant(number)
                raise
            report(f"Tenant {number} reads and writes")

    def _stop_tenant(self, number: int) -> None:
        self.client(number).stop()
        self.database(number).stop()

    def down(self) -> list[str]:
        """Take all levers back, and stop everything; data and logs stay.

        Returns the names of what was stopped.  Raises LabError.
        """
        if not self.folder.exists():
            return []
        try:
            self.switches().switch_to(())
        finally:
            names = [f"tenant {number}" for number in self.running]
            for number in reversed(TENANTS):
                self._stop_tenant(number)
            stopped = stop_stack(self.stack, SERVICES) + stop_stack(self.folder)
        NeighbourOptions.forget(self.folder)
        return [*names, *stopped]
