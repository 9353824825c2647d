"""Starts and stops Swift in two regions, with a Keystone at each."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from keylag.errors import WrongUsageError
from keylag.lab import iproute
from keylag.lab.galera import haproxy
from keylag.lab.galera.cluster import Report
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.galera.site import resource_attributes, site_folder
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.network import Host, Network
from keylag.lab.settings import Settings
from keylag.lab.swift import devices, rings
from keylag.lab.swift.options import FAR, NO_CACHE, OWN, SHARED, SwiftOptions
from keylag.lab.swift.servers import (
    PROXY_PORT,
    TEMPLATES,
    Server,
    proxy_server,
    storage_servers,
    wait_until_ready,
)
from keylag.services import protected_service
from keylag.services.base import HOST
from keylag.services.keystone import REGION, telemetry_settings
from keylag.stack_info import StackInfo
from keylag.stack_record import load_secrets
from keylag.state import check_path, state_folder
from keylag.tools import venvs
from keylag.tools.install import require_tool
from keylag.tools.programs import LABS_ADVICE, find_program

LINK: Final = Link(round_trip_seconds=0.277, rate_bits_per_second=6e6)
"""Between Tokyo and the EU, in the article."""
STORAGE_NODES: Final = 4
"""Of each region, as in the article."""
USERS: Final = 100
FLUSH: Final = """\
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as server:
    server.sendall(b"flush_all\\r\\n")
    assert server.recv(100) == b"OK\\r\\n"
"""
"""A program that empties a memcached in its own namespace."""
PROGRAMS: Final = ("mkfs.ext4", "mount", "umount")
MAKES: Final = "network namespaces and loop devices"
AFFINITY: Final = Template("""\
sorting_method = affinity
read_affinity = r$region=100
write_affinity = r$region
write_affinity_node_count = 2 * replicas
write_affinity_handoff_delete_count = auto""")
NO_AFFINITY: Final = "sorting_method = shuffle"
TOKEN_SETTINGS: Final[Mapping[str, Template]] = {
    SHARED: Template("cache = swift.cache\ntoken_cache_time = $seconds"),
    OWN: Template("token_cache_time = $seconds"),
    NO_CACHE: Template("token_cache_time = -1"),
}
"""The settings of auth_token; without `cache` each process keeps tokens itself."""


@dataclass(frozen=True)
class SwiftRegions:
    """The laboratory of a folder."""

    folder: Path
    storage_nodes: int = STORAGE_NODES
    """Of each region; for `up`."""

    @property
    def keystones(self) -> GaleraWan:
        """Its network, and a Keystone with a database node at each site."""
        return GaleraWan(self.folder, USERS, self.storage_nodes)

    def up(self, link: Link, options: SwiftOptions, report: Report) -> Settings:
        """Start everything on a link without delay, and then set the link.

        Returns the settings of its network.  Raises the errors of the parts, and then
        stops what it started; WrongUsageError with too few storage nodes.
        """
        iproute.require_root(MAKES)
        check_path(self.folder)
        if self.storage_nodes * options.regions < rings.REPLICAS:
            message = f"{rings.REPLICAS} replicas need as many storage nodes."
            raise WrongUsageError(message)
        for program in PROGRAMS:
            find_program(program, LABS_ADVICE)
        self._programs()
        try:
            database = ClusterOptions(nodes=1, label=SwiftOptions.LABORATORY)
            self.keystones.up(Link(), database, report)
            self.start_swift(options, report)
            return self.keystones.wan.change(link)
        except BaseException:
            self.down()
            raise

    def start_swift(self, options: SwiftOptions, report: Report) -> None:
        """Start Swift with empty devices, in place of one that runs.

        Raises LabError, ToolError or OSError.
        """
        network = self.keystones.wan.network()
        self._stop_swift()
        self._config.mkdir(parents=True)
        shutil.copyfile(TEMPLATES / "swift.conf", self._config / "swift.conf")
        builder = self._programs() / "swift-ring-builder"
        rings.build_rings(builder, self._config, network, options.regions)
        started = []
        for site in network.sites[: options.regions]:
            for host in site.hosts:
                devices.make_device(self._devices / host.name)
                started += storage_servers(self.folder, host)
        for one in started:
            one.start(self._python(), self._storage_config(one, options), {})
        wait_until_ready(started)
        report(f"{len(started)} storage servers are up")
        self.start_proxies(options)
        report("The proxy servers of both regions are up")

    def start_proxies(self, options: SwiftOptions) -> None:
        """Start the proxy servers, in place of those that run.

        Raises LabError, ToolError or OSError.
        """
        network = self.keystones.wan.network()
        proxies = [proxy_server(self.folder, one.router) for one in network.sites]
        for region, one in enumerate(proxies, start=1):
            one.stop()
            config = self._proxy_config(network, region, options)
            one.start(self._python(), config, self._telemetry(one.host))
        wait_until_ready(proxies)
        options.write(self.folder)

    def options(self) -> SwiftOptions:
        """Return the settings of the Swift that runs; raises LabError if none does."""
        return SwiftOptions.read(self.folder)

    def link(self) -> Link:
        """Return the link of a Swift that runs; raises LabError if none does."""
        self.options()
        iproute.require_root()
        try:
            return self.keystones.link()
        except LabError as error:
            message = f"{self.folder} is incomplete. Run `keylag lab swift-regions up`."
            raise LabError(message) from error

    def router(self, region: int) -> Host:
        """Return the host of a region's proxy server, memcached and Keystone."""
        return self.keystones.router(region)

    def down(self) -> list[str]:
        """Stop everything, and remove the network and the devices; logs stay.

        Returns the names of what was stopped.  Raises LabError or OSError.
        """
        try:
            stopped = self.keystones.down()
        finally:
            devices.remove_devices(self._devices)
        SwiftOptions.forget(self.folder)
        return stopped

    def _stop_swift(self) -> None:
        for site in self.keystones.wan.network().sites:
            proxy_server(self.folder, site.router).stop()
            for host in site.hosts:
                for one in storage_servers(self.folder, host):
                    one.stop()
            self._flush_memcached(site.router)
        devices.remove_devices(self._devices)
        shutil.rmtree(self._config, ignore_errors=True)

    def _flush_memcached(self, router: Host) -> None:
        """Let proxy servers forget which accounts and containers exist."""
        port = StackInfo(site_folder(self.folder, router.name)).port("memcached")
        program = [sys.executable, "-c", FLUSH, str(port)]
        iproute.run(*iproute.command_in(router.namespace, program))

    @property
    def _config(self) -> Path:
        return self.folder / "swift"

    @property
    def _devices(self) -> Path:
        return self.folder / "devices"

    def _programs(self) -> Path:
        """Return the folder of Swift's programs; raises ToolError without Swift."""
        return require_tool(venvs.SWIFT, state_folder() / "tools").parent

    def _python(self) -> Path:
        return self._programs() / "python"

    def _storage_config(self, server: Server, options: SwiftOptions) -> str:
        return _fill(
            "storage.conf",
            address=server.host.address,
            port=server.port,
            devices=self._devices / server.host.name,
            folder=self._config,
            kind=server.kind,
            container_update_seconds=options.container_update_seconds,
        )

    def _proxy_config(
        self, network: Network, region: int, options: SwiftOptions
    ) -> str:
        router = network.sites[region - 1].router
        site = StackInfo(site_folder(self.folder, router.name))
        asked = network.sites[0].router if options.keystone == FAR else router
        affinity = options.affinity and options.regions > 1
        return _fill(
            "proxy.conf",
            port=PROXY_PORT,
            folder=self._config,
            processes=options.proxy_processes,
            affinity=AFFINITY.substitute(region=region) if affinity else NO_AFFINITY,
            memcached=f"{HOST}:{site.port('memcached')}",
            keystone=haproxy.keystone_url(asked),
            keystone_region=REGION,
            username=protected_service.NAME,
            password=load_secrets(site.data).service,
            project=protected_service.PROJECT,
            token_cache=TOKEN_SETTINGS[options.token_cache].substitute(
                seconds=options.cached_seconds
            ),
        )

    def _telemetry(self, router: Host) -> dict[str, str]:
        """Return the variables of Keylag in the proxy server of a region."""
        site = StackInfo(site_folder(self.folder, router.name))
        return {
            **telemetry_settings(),
            "OTEL_EXPORTER_OTLP_ENDPOINT": site.url("otlp"),
            "OTEL_SERVICE_NAME": "swift-proxy",
            "OTEL_RESOURCE_ATTRIBUTES": resource_attributes(
                SwiftOptions.LABORATORY, router
            ),
        }


def _fill(template: str, **values: object) -> str:
    """Return a configuration of deploy/swift-regions with values; raises OSError."""
    return (TEMPLATES / template).read_text(encoding="utf-8").format(**values)
