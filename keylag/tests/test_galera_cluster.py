"""The arguments of the two nodes of a Galera cluster."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from keylag import services
from keylag.services import galera, mariadb, require_programs
from keylag.services.base import Secrets, ServiceContext, StackOptions
from keylag.services.galera_cluster import (
    TRANSFER_SCRIPTS,
    first_node_arguments,
    forget_cluster,
    second_node_arguments,
    transfer_variables,
)
from keylag.tools import ToolError

NAMES = (*mariadb.SERVICE.ports, *galera.SERVICE.ports)
PORTS = {name: number for number, name in enumerate(NAMES, start=20000)}


@pytest.fixture
def clustered(tmp_path: Path) -> ServiceContext:
    """A stack with the extra service."""
    options = StackOptions(extras=("galera",))
    return ServiceContext(tmp_path, None, options, PORTS, Secrets())  # type: ignore[arg-type]


def without_extra(context: ServiceContext) -> ServiceContext:
    return replace(context, options=StackOptions())


def provider_options(arguments: list[str]) -> dict[str, str]:
    """Return the options of the provider by name."""
    prefix = "--wsrep-provider-options="
    (text,) = (one.removeprefix(prefix) for one in arguments if prefix in one)
    return dict(option.split("=", 1) for option in text.split(";"))


def test_a_stack_without_the_extra_is_no_cluster(clustered: ServiceContext) -> None:
    usual = without_extra(clustered)

    forget_cluster(usual)

    assert not first_node_arguments(usual)
    assert not transfer_variables(usual)
    assert not list(usual.folder.iterdir())


def test_each_node_has_ports_of_its_own_on_loopback(clustered: ServiceContext) -> None:
    first = provider_options(first_node_arguments(clustered))
    second = provider_options(second_node_arguments(clustered))

    names = ("gmcast.listen_addr", "ist.recv_addr")
    addresses = [options[name] for options in (first, second) for name in names]
    assert all("127.0.0.1:" in one for one in addresses)
    ports = {int(one.rpartition(":")[2]) for one in addresses}
    assert ports == {*PORTS.values()} - {PORTS["mariadb"], PORTS["galera"]}


def test_the_first_node_begins_a_cluster_and_serves_alone(
    clustered: ServiceContext,
) -> None:
    arguments = first_node_arguments(clustered)

    assert "--wsrep-cluster-address=gcomm://" in arguments
    assert provider_options(arguments)["pc.weight"] == "2"
    joined = f"gcomm://{clustered.address('galera-first-replication')}"
    assert f"--wsrep-cluster-address={joined}" in second_node_arguments(clustered)


def test_the_state_of_the_last_cluster_is_forgotten(clustered: ServiceContext) -> None:
    forget_cluster(clustered)
    state = clustered.folder / "galera" / "mariadb" / "grastate.dat"
    state.write_text("safe_to_bootstrap: 0")

    forget_cluster(clustered)

    assert not state.exists()
    assert stat.S_IMODE(state.parent.stat().st_mode) == stat.S_IRWXU


def test_nodes_find_the_script_of_the_state_transfer(clustered: ServiceContext) -> None:
    path = transfer_variables(clustered)["PATH"]

    assert path.split(os.pathsep)[0] == str(TRANSFER_SCRIPTS)
    assert os.access(TRANSFER_SCRIPTS / "wsrep_sst_keylag", os.X_OK)


def test_a_missing_library_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = str(tmp_path / "libgalera_smm.so")
    monkeypatch.setattr(services, "EXTRA_SERVICES", {"galera": (library,)})

    with pytest.raises(ToolError) as caught:
        require_programs(("galera",))

    assert str(caught.value) == (
        f"{library} is not installed. Install Debian's package galera-4, "
        "or start the stack without galera."
    )
