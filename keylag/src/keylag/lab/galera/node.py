"""A MariaDB of the cluster, on a host of its own."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pymysql

from keylag import processes
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.iproute import run
from keylag.lab.server import HostServer
from keylag.paths import DEPLOY
from keylag.services.base import inherited_environment, socket_folder
from keylag.services.galera import administrator
from keylag.services.galera_cluster import cluster_address, node_arguments
from keylag.services.mariadb import user_option
from keylag.stack import make_own_folder
from keylag.tools.programs import find_program

TRANSFER_PROGRAMS: Final = DEPLOY / "galera-wan"
"""What state transfer finds before the system's programs."""
CONFIG: Final = DEPLOY / "mysql" / "keylag.cnf"
SQL_PORT: Final = 3306
REPLICATION_PORT: Final = 4567
INCREMENTAL_PORT: Final = 4568
TRANSFER_PORT: Final = 4444
SYNCED: Final = "Synced"
POLL_SECONDS: Final = 0.1
JOIN_SECONDS: Final = 240
"""Enough for a copy of all data (SST) over a long link."""
UNKNOWN_POSITION: Final = re.compile(r"^seqno:\s+-1$", re.MULTILINE)
"""In the state of a server that runs, or was killed."""
POSITION: Final = re.compile(r"Recovered position: ([0-9a-f-]+:-?\d+)")
TRANSIENT: Final = shutil.ignore_patterns("ibtmp1", "gvwstate.dat")
"""Files of a data folder that belong to a running server."""
AFTER_ALL_WRITES: Final = "SET SESSION wsrep_sync_wait = 1"
"""Lets later queries of a connection wait until the node has applied all writes of the
cluster.  It has a write before that."""
STATUS: Final = "SHOW GLOBAL STATUS LIKE 'wsrep\\_%'"


@dataclass(frozen=True)
class Node(HostServer):
    """A database server of a laboratory, which may run or not."""

    segment: int
    """Number of its site."""

    @property
    def name(self) -> str:
        """The name of its host."""
        return self.host.name

    @property
    def service(self) -> str:
        """The name of its process."""
        return f"node-{self.name}"

    @property
    def folder(self) -> Path:
        """The folder with its data."""
        return self.lab / "nodes" / self.name

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / "data"

    @property
    def slow_log(self) -> Path:
        """Its slow log, which has every statement."""
        return self.lab / "logs" / f"{self.service}-slow.log"

    @property
    def socket(self) -> Path:
        """The Unix socket for the administrator, who is the user of the laboratory."""
        return socket_folder(self.lab) / f"{self.name}.sock"

    def start(
        self, members: Sequence["Node"], options: ClusterOptions, *, first: bool = False
    ) -> None:
        """Start the server, which joins the members or begins a new cluster.

        After a kill it finds its position in the cluster first, or it would need an SST
        (a copy of all data).  Then it returns at once.  Raises LabError, StackError or
        OSError.
        """
        for path in (self.data, self._temporary, self.socket.parent):
            make_own_folder(path)
        joined = [] if first else [one.replication_address for one in members]
        arguments = [
            *map(str, self._server_arguments()),
            *node_arguments(
                cluster_address(",".join(joined)),
                self.provider_options(options),
                self.host.address,
                "keylag_rsync",
            ),
        ]
        more = ["--wsrep-new-cluster"] if first else self._recover(arguments)
        programs = inherited_environment().get("PATH", os.defpath)
        variables = {"PATH": f"{TRANSFER_PROGRAMS}:{programs}"}
        self.start_command([*arguments, *more], variables)

    def _recover(self, arguments: Sequence[str]) -> list[str]:
        """Return the option with the position of a server that was killed."""
        state = self.data / "grastate.dat"
        if not state.exists() or not UNKNOWN_POSITION.search(state.read_text()):
            return []
        log = self.folder / "recovery.log"
        log.unlink(missing_ok=True)
        run(*arguments, "--wsrep-recover", f"--log-error={log}")
        found = POSITION.search(log.read_text(errors="replace"))
        return [f"--wsrep-start-position={found[1]}"] if found else []

    @property
    def replication_address(self) -> str:
        """HOST:PORT at which it replicates."""
        return f"{self.host.address}:{REPLICATION_PORT}"

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    def _server_arguments(self) -> list[str | Path]:
        address = self.host.address
        return [
            find_program("mariadbd"),
            f"--defaults-file={CONFIG}",
            f"--datadir={self.data}",
            f"--tmpdir={self._temporary}",
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'mariadb.pid'}",
            f"--bind-address={address}",
            f"--port={SQL_PORT}",
            f"--slow-query-log-file={self.slow_log}",
            *user_option(),
            f"--wsrep-node-name={self.name}",
            f"--wsrep-sst-receive-address={address}:{TRANSFER_PORT}",
        ]

    def provider_options(self, options: ClusterOptions) -> Mapping[str, str]:
        """Return the options of Galera's library."""
        segment = self.segment if options.segments else 0
        return {
            # The position in the cluster, which belongs to the data.
            "base_dir": str(self.data),
            "base_host": self.host.address,
            "gcache.dir": str(self.folder),
            "gcache.size": options.gcache_size,
            "gmcast.listen_addr": f"tcp://{self.replication_address}",
            "gmcast.segment": str(segment),
            "ist.recv_addr": f"{self.host.address}:{INCREMENTAL_PORT}",
            **options.provider,
        }

    def kill(self) -> None:
        """Kill the server process (SIGKILL)."""
        found = [one.process for one in self.processes()]
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(found, timeout=processes.GRACE_SECONDS)

    def status(self) -> Mapping[str, str]:
        """Return Galera's status by the names without `wsrep_`; empty if it is down."""
        try:
            found = self.query(STATUS)
        except pymysql.MySQLError:
            return {}
        return {name.removeprefix("wsrep_"): value for name, value in found}

    def query(self, *statements: str, database: str = "") -> Sequence[Sequence[Any]]:
        """Run statements as the administrator, and return the rows of the last one.

        Raises pymysql.MySQLError.
        """
        with (
            closing(self._connect(database)) as connection,
            connection.cursor() as cursor,
        ):
            for one in statements:
                cursor.execute(one)
            return cursor.fetchall()

    def _connect(self, database: str) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        return pymysql.connect(
            unix_socket=str(self.socket),
            user=administrator(),
            database=database or None,
            autocommit=True,
            ssl_disabled=True,
        )

    def wait_until_synced(self) -> None:
        """Wait until it is synced.

        Raises LabError if it ends, or after JOIN_SECONDS.
        """
        self.wait_until(self._is_synced, JOIN_SECONDS)

    def _is_synced(self) -> bool:
        return self.status().get("local_state_comment") == SYNCED

    def copy_data_of(self, other: "Node") -> None:
        """Replace its data with that of another server; neither may run."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(other.data, self.data, ignore=TRANSIENT)

    def forget_data(self) -> None:
        """Delete its data, so that it joins by SST (a copy of all data)."""
        shutil.rmtree(self.folder, ignore_errors=True)
