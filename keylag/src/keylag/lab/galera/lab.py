"""Starts, shows and stops the cluster over two sites, with a Keystone at each."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag.lab import iproute
from keylag.lab.galera import haproxy, site
from keylag.lab.galera.cluster import Cluster, Report
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.iproute import LabError, command_in
from keylag.lab.link import Link
from keylag.lab.network import Host, Network
from keylag.lab.settings import Settings
from keylag.lab.wan import Wan
from keylag.sample_cloud import CloudSize, initial_data
from keylag.services import mysqld_exporter
from keylag.services.base import StackOptions
from keylag.stack import Stack
from keylag.stack_record import load_secrets
from keylag.stack_shutdown import stop_stack
from keylag.tools import Tools
from keylag.tools.programs import GALERA_LIBRARY, LABS_ADVICE, find_program

USERS: Final = 1000
PROJECTS: Final = 100
PROGRAMS: Final = (
    GALERA_LIBRARY,
    "haproxy",
    "rsync",
    "wsrep_sst_rsync",
    mysqld_exporter.PROGRAM,
)


@dataclass(frozen=True)
class GaleraWan:
    """The laboratory of a folder."""

    folder: Path
    users: int = USERS
    """Users of the cloud, at the next start."""
    hosts: int = 0
    """Hosts of each site, at the next start, if more than the database needs."""

    @property
    def wan(self) -> Wan:
        """Its network."""
        return Wan(self.folder / "wan")

    def up(self, link: Link, options: ClusterOptions, report: Report) -> Settings:
        """Start everything on a link without delay, and then set the link.

        Returns the settings of its network.  Raises the errors of the parts, and then
        stops what it started.
        """
        iproute.require_root()
        for program in PROGRAMS:
            find_program(program, LABS_ADVICE)
        self.down()
        try:
            self._start(options, report)
            return self.wan.change(link)
        except BaseException:
            self.down()
            raise

    def _start(self, options: ClusterOptions, report: Report) -> None:
        source = self._make_source(report)
        self.wan.up(max(options.nodes, self.hosts), Link())
        options.write(self.folder)
        cluster = self.cluster()
        secrets = load_secrets(source)
        cluster.start(source, secrets, report)
        for segment, one in enumerate(cluster.network.sites):
            folder = site.site_folder(self.folder, one.router.name)
            self._copy_site_data(source, folder / "data")
            hosts = [node.host for node in cluster.nodes_behind(segment)]
            is_far = hosts[0] not in one.hosts
            check_seconds = (
                haproxy.FAR_CHECK_SECONDS if is_far else haproxy.CHECK_SECONDS
            )
            haproxy.write_config(folder, one.router, hosts, check_seconds)
            self._run_in_site(one.router.name, [] if segment else ["--revoke"])
            report(f"Keystone of site {one.router.name} is up")

    def _make_source(self, report: Report) -> Path:
        """Return the data folder of a stack with the cloud, which no longer runs."""
        cloud = f"a cloud with {self.users} users in {PROJECTS} projects"
        report(f"Making {cloud}; later starts reuse a copy")
        stack = Stack(
            self.folder / "source",
            Tools.load(),
            StackOptions(cache="memcache_pool", users=self.users),
            initial_data=initial_data(CloudSize(self.users, PROJECTS)),
            console=Console(stderr=True),
        )
        with stack:
            pass
        return stack.data

    def _copy_site_data(self, source: Path, data: Path) -> None:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(source, data, ignore=shutil.ignore_patterns("mariadb"))
        data.chmod(0o700)

    def _run_in_site(self, name: str, arguments: Sequence[str]) -> None:
        """Start the servers of a site in the namespace of its router."""
        host = self.wan.network().find(name)
        assert host  # noqa: S101 - the network has it
        program = [sys.executable, "-m", "keylag.lab.galera.site"]
        command = [*program, str(self.folder), name, *arguments]
        ended = subprocess.run(command_in(host.namespace, command), check=False)
        if ended.returncode != 0:
            message = f"The servers of site {name} did not start; the reason is above."
            raise LabError(message)

    def cluster(self) -> Cluster:
        """Return the cluster that runs; raises LabError if none does."""
        options = ClusterOptions.read(self.folder)
        iproute.require_root()
        try:
            network = self.wan.network()
        except LabError as error:
            message = f"{self.folder} is incomplete. Run `keylag lab galera-wan up`."
            raise LabError(message) from error
        return Cluster(self.folder, network, options)

    def router(self, site: int) -> Host:
        """Return the host of the Keystone of a site, 1 or 2; raises LabError."""
        return self.wan.network().sites[site - 1].router

    def link(self) -> Link:
        """Return the link of a cluster that runs; raises LabError if none does."""
        self.cluster()
        return self.wan.require().link

    def status(self) -> Mapping[str, Mapping[str, str]]:
        """Return Galera's status of each node; empty for one that is down."""
        return {one.name: one.status() for one in self.cluster().nodes}

    def down(self) -> list[str]:
        """Stop everything, and remove the network; data and logs stay.

        Returns the names of what was stopped.  Raises LabError.
        """
        iproute.require_root()
        stopped = []
        for one in Network(self.folder / "wan", 0).sites:
            folder = site.site_folder(self.folder, one.router.name)
            names = stop_stack(folder, site.SERVICES)
            stopped += [f"{name} of site {one.router.name}" for name in names]
        stopped += stop_stack(self.folder / "source")
        stopped += stop_stack(self.folder)
        self.wan.down()
        ClusterOptions.forget(self.folder)
        return stopped
