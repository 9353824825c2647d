"""The six nodes of the cluster: how they get their data, start, and come back."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from keylag.lab.galera.node import POLL_SECONDS, SYNCED, Node
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.iproute import LabError
from keylag.lab.network import Network
from keylag.services.base import Secrets
from keylag.services.mariadb import ACCOUNTS, SERVICE

CLIENTS: Final = "10.64.%"
"""From where Keystone's accounts may connect: from the routers, where HAProxy is."""
CHECK_ACCOUNT: Final = f"CREATE USER IF NOT EXISTS 'haproxy'@'{CLIENTS}'"

COUNT_EVENTS: Final = "SELECT COUNT(*) FROM keystone.revocation_event"
DELETE_EVENTS: Final = (
    "DELETE FROM keystone.revocation_event ORDER BY id LIMIT {number}"
)
FORGET_LOG_INS: Final = "UPDATE keystone.user SET last_active_at = NULL"

Report = Callable[[str], None]
"""Called with the line about a step."""


@dataclass(frozen=True)
class Cluster:
    """The nodes of a laboratory, those of the first site first."""

    lab: Path
    network: Network
    options: ClusterOptions

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return [one for segment in (0, 1) for one in self.nodes_of(segment)]

    def nodes_of(self, segment: int) -> list[Node]:
        """Return the nodes of a site, which are on its first hosts."""
        hosts = self.network.sites[segment].hosts[: self.options.nodes]
        return [Node(self.lab, host, segment) for host in hosts]

    def nodes_behind(self, segment: int) -> list[Node]:
        """Return the nodes that the Keystone of a site reads from and writes to."""
        return self.nodes_of(1 if self.options.far_database else segment)

    def find(self, name: str) -> Node | None:
        """Return the node on a host."""
        return next((one for one in self.nodes if one.name == name), None)

    def start(self, data: Path, secrets: Secrets, report: Report) -> None:
        """Give all nodes the same data, and start them.

        `data` is that of a stack, with the accounts of `secrets`.  As all nodes begin
        with the same data, none has to copy another's.  Raises LabError or OSError.
        """
        first, *others = self.nodes
        shutil.rmtree(first.folder, ignore_errors=True)
        shutil.copytree(data / SERVICE.name, first.data)
        self._add_accounts(first, secrets)
        for one in others:
            one.copy_data_of(first)
        seconds = self.start_node(first, first=True)
        report(f"{first.name} began the cluster in {seconds:.1f} s")
        # One at a time: a node gives what is missing to one other only.
        for one in others:
            report(f"{one.name} joined in {self.start_node(one):.1f} s")

    def _add_accounts(self, node: Node, secrets: Secrets) -> None:
        """Let a node write the accounts, and end with its position in the cluster."""
        text = Template(ACCOUNTS.read_text()).substitute(
            KEYLAG_ACCOUNTS_HOST=CLIENTS,
            KEYLAG_DATABASE_PASSWORD=secrets.database,
            KEYLAG_PROXYSQL_PASSWORD=secrets.proxysql,
            KEYLAG_EXPORTERS_PASSWORD=secrets.exporters,
        )
        statements = [one for one in text.splitlines() if not one.startswith("--")]
        self.start_node(node, first=True)
        for statement in [*filter(None, statements), CHECK_ACCOUNT]:
            node.query(statement)
        node.stop()

    def start_node(self, node: Node, *, first: bool = False) -> float:
        """Start a node; return the seconds until it is synced.

        They include the search for its position in the cluster, after a kill.  The
        first node begins a new cluster.  Another one joins by IST, or by SST (a copy of
        all data) if too many writes are missing.  Raises LabError or OSError.
        """
        begun = time.monotonic()
        node.start(self.nodes, self.options, first=first)
        node.wait_until_synced()
        return time.monotonic() - begun

    def limit_events(self, number: int) -> None:
        """Delete the oldest revocation events, so that at most `number` are left.

        Raises pymysql.MySQLError.
        """
        first = self.nodes[0]
        surplus = first.query(COUNT_EVENTS)[0][0] - number
        if surplus > 0:
            first.query(DELETE_EVENTS.format(number=surplus))

    def forget_log_ins(self) -> None:
        """Let the next log-in of each user be the first of a day, which commits.

        Raises pymysql.MySQLError.
        """
        self.nodes[0].query(FORGET_LOG_INS)

    def wait_until_whole(self, deadline: float) -> None:
        """Wait until all nodes are synced members.

        Raises LabError after the deadline, a time of the monotonic clock.
        """
        while not all(self._is_member(one) for one in self.nodes):
            if time.monotonic() > deadline:
                message = "Not all nodes came back to the cluster in time."
                raise LabError(message)
            time.sleep(POLL_SECONDS)

    def _is_member(self, node: Node) -> bool:
        status = node.status()
        return status.get("local_state_comment") == SYNCED and status.get(
            "cluster_size"
        ) == str(len(self.nodes))
