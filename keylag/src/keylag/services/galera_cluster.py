"""The Galera cluster of a stack: what its two nodes have in common.

The first node is the stack's MariaDB, and each of its starts begins a new cluster.
The second one joins it and gets a copy of its data.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from keylag.paths import DEPLOY
from keylag.services.base import HOST, ServiceContext
from keylag.tools.programs import GALERA_LIBRARY

EXTRA: Final = "galera"
ADVICE: Final = (
    f"Install Debian's package galera-4, or start the stack without {EXTRA}."
)
TRANSFER_SCRIPTS: Final = DEPLOY / "galera"
"""The folder of the script that copies the data to the second node."""
MAJORITY: Final = 2
"""Weight of the first node: it serves also without the second one, which has 1."""


def folder(context: ServiceContext) -> Path:
    """Return the folder of the second node, and of what the provider stores."""
    return context.folder / "galera"


def cluster_address(replication: str) -> str:
    """Return the URL of a cluster of which a node replicates at HOST:PORT."""
    return f"gcomm://{replication}"


def transfer_variables(context: ServiceContext) -> dict[str, str]:
    """Return the environment of a node, which finds the script on the PATH."""
    if EXTRA not in context.options.extras:
        return {}
    return {"PATH": f"{TRANSFER_SCRIPTS}:{os.environ.get('PATH', os.defpath)}"}


def first_node_arguments(context: ServiceContext) -> list[str]:
    """Return the arguments that make the stack's MariaDB the first node.

    Without the extra service there are none.
    """
    if EXTRA not in context.options.extras:
        return []
    provider = _provider_options(context, "mariadb", {"pc.weight": str(MAJORITY)})
    return node_arguments("gcomm://", provider)


def second_node_arguments(context: ServiceContext) -> list[str]:
    """Return the arguments of the node that joins the first one."""
    first = cluster_address(context.address("galera-first-replication"))
    return node_arguments(first, _provider_options(context, "galera", {}))


def forget_cluster(context: ServiceContext) -> None:
    """Delete the state of the last cluster; without the extra also the second node."""
    if EXTRA not in context.options.extras:
        shutil.rmtree(folder(context), ignore_errors=True)
        return
    shutil.rmtree(folder(context) / "mariadb", ignore_errors=True)
    make_folder(folder(context) / "mariadb")


def make_folder(path: Path) -> None:
    """Create a folder that only the user reads, if it does not exist."""
    path.mkdir(exist_ok=True, parents=True, mode=0o700)


def node_arguments(
    cluster: str,
    provider: Mapping[str, str],
    host: str = HOST,
    transfer: str = "keylag",
) -> list[str]:
    """Return the arguments of a node at a host.

    `cluster` is the URL that it joins, `transfer` the method by which it gets all data.
    """
    options = ";".join(f"{name}={value}" for name, value in provider.items())
    return [
        "--wsrep-on=ON",
        f"--wsrep-provider={GALERA_LIBRARY}",
        f"--wsrep-provider-options={options}",
        "--wsrep-cluster-name=keylag",
        f"--wsrep-cluster-address={cluster}",
        f"--wsrep-node-address={host}",
        f"--wsrep-sst-method={transfer}",
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
    ]


def _provider_options(
    context: ServiceContext, node: str, more: Mapping[str, str]
) -> dict[str, str]:
    role = "first" if node == "mariadb" else "second"
    state = str(folder(context) / node)
    return {
        "base_dir": state,
        "base_host": HOST,
        "gcache.dir": state,
        "gcache.size": "16M",
        "gmcast.listen_addr": f"tcp://{context.address(f'galera-{role}-replication')}",
        "ist.recv_addr": context.address(f"galera-{role}-transfer"),
        "pc.recovery": "no",
        **more,
    }
