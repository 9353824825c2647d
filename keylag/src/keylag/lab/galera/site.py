"""What runs on the router of a site: HAProxy, memcached and Keystone, with Keylag.

    python -m keylag.lab.galera.site LAB NAME

Runs in the router's namespace, so 127.0.0.1 is that of the site.
"""

from pathlib import Path
from typing import Final

import click
from rich.console import Console

from keylag.command_errors import handle_errors
from keylag.lab.galera import haproxy
from keylag.lab.galera.cluster import Cluster
from keylag.lab.galera.node import SQL_PORT, Node
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.network import SITE_NAMES, Host
from keylag.lab.wan import Wan
from keylag.sample_cloud import revoke_tokens
from keylag.services import (
    exporters,
    keystone,
    memcached,
    mysqld_exporter,
    otel_collector,
    prometheus,
)
from keylag.services.base import Service, ServiceContext, StackOptions
from keylag.stack import Stack
from keylag.tools import Tools

SERVICES: Final[tuple[Service, ...]] = (
    haproxy.SERVICE,
    memcached.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    keystone.SERVICE,
    exporters.make_service("exporters", exporters.keystone_node),
)
"""What a site runs whatever nodes it has."""
REVOCATION_EVENTS: Final = 50
"""Live revocation events: their number is known to affect Keystone."""


def site_folder(lab: Path, name: str) -> Path:
    """Return the folder of the stack on the router of a site."""
    return lab / f"site-{name}"


def node_exporters(node: Node) -> tuple[Service, Service]:
    """Return the exporters of a database node, on the router of a site that uses it.

    They are keylag-exporter for its slow log, and mysqld_exporter for its status.
    """

    def config(_: ServiceContext, folder: Path) -> str:
        return exporters.slow_log_of(folder, node.slow_log)

    return (
        exporters.make_service(f"{exporters.NODE_PREFIX}{node.name}", config),
        mysqld_exporter.make_service(node.name, node.host.address, SQL_PORT),
    )


def resource_attributes(cluster: str, router: Host) -> str:
    """Return OTEL_RESOURCE_ATTRIBUTES of the servers of a site.

    `cluster` is a label of its metrics, beside the name of the site.
    """
    attributes = {
        "host.name": f"site-{router.name}",
        "cluster": cluster,
        "region": router.name,
    }
    return ",".join(f"{name}={value}" for name, value in attributes.items())


def start(cluster: Cluster, segment: int, *, revoke: bool) -> None:
    """Start the servers of a site; `revoke` also revokes tokens, for all sites.

    Raises StackError, PortTakenError or ToolError.
    """
    router = cluster.network.sites[segment].router
    attributes = resource_attributes(cluster.options.label, router)
    sync_wait = {"OS_DATABASE__MYSQL_WSREP_SYNC_WAIT": "1"}
    options = StackOptions(
        cache=cluster.options.cache,
        environment={
            **(sync_wait if cluster.options.sync_wait else {}),
            "OTEL_RESOURCE_ATTRIBUTES": attributes,
            # The catalog has an address that both sites reach.
            "OS_DEFAULT__PUBLIC_ENDPOINT": haproxy.keystone_url(router),
        },
    )
    nodes = cluster.nodes_behind(segment)
    services = (*SERVICES, *(one for node in nodes for one in node_exporters(node)))
    folder = site_folder(cluster.lab, router.name)
    stack = Stack(folder, Tools.load(), options, services=services, console=Console())
    stack.up()
    if revoke:
        revoke_tokens(stack, REVOCATION_EVENTS)


@click.command()
@click.argument("lab", type=click.Path(path_type=Path))
@click.argument("name", type=click.Choice(SITE_NAMES))
@click.option("--revoke", is_flag=True)
def main(lab: Path, name: str, *, revoke: bool) -> None:
    """Start a site of LAB in this process's network namespace."""
    with handle_errors():
        cluster = Cluster(lab, Wan(lab / "wan").network(), ClusterOptions.read(lab))
        start(cluster, SITE_NAMES.index(name), revoke=revoke)


if __name__ == "__main__":
    main()
