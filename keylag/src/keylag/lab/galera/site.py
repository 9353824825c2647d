"""What runs on the router of a site: HAProxy, memcached and Keystone, with Keylag.

    python -m keylag.lab.galera.site FOLDER

Runs in the router's namespace, so 127.0.0.1 is that of the site.
"""

from pathlib import Path
from typing import Final

import click
from rich.console import Console

from keylag.command_errors import handle_errors
from keylag.lab.galera import haproxy
from keylag.sample_cloud import revoke_tokens
from keylag.services import keystone, memcached, otel_collector, prometheus
from keylag.services.base import Service, StackOptions
from keylag.stack import Stack
from keylag.tools import Tools

SERVICES: Final[tuple[Service, ...]] = (
    haproxy.SERVICE,
    memcached.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    keystone.SERVICE,
)
REVOCATION_EVENTS: Final = 50
"""Live revocation events: their number is known to affect Keystone."""


def site_folder(lab: Path, name: str) -> Path:
    """Return the folder of the stack on the router of a site."""
    return lab / f"site-{name}"


def start(folder: Path, name: str, *, revoke: bool) -> None:
    """Start the servers of a site; `revoke` also revokes tokens, for all sites.

    Raises StackError, PortTakenError or ToolError.
    """
    attributes = f"host.name=site-{name},cluster=galera-wan"
    options = StackOptions(
        cache="memcache_pool", environment={"OTEL_RESOURCE_ATTRIBUTES": attributes}
    )
    stack = Stack(folder, Tools.load(), options, services=SERVICES, console=Console())
    stack.up()
    if revoke:
        revoke_tokens(stack, REVOCATION_EVENTS)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--revoke", is_flag=True)
def main(folder: Path, name: str, *, revoke: bool) -> None:
    """Start a site in this process's network namespace."""
    with handle_errors():
        start(folder, name, revoke=revoke)


if __name__ == "__main__":
    main()
