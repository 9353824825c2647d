"""Swift in two regions: its settings, its figures, and a short real run."""

import json
import os
import socket
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from samples import sample

from keylag.cli import main
from keylag.jtl import Sample
from keylag.lab import intervals, mounts
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.network import Network
from keylag.lab.relay import TUN
from keylag.lab.swift.lab import SwiftRegions
from keylag.lab.swift.measurement import Load, measure, summarise
from keylag.lab.swift.options import FAR, NEAR, NOT_CACHED, SETS, SwiftOptions
from keylag.lab.swift.rings import PORTS
from keylag.lab.swift.servers import TEMPLATES, listening_ports, storage_servers
from keylag.server_timing import ServerTiming
from keylag.state import state_folder
from keylag.tools import venvs
from keylag.tools.install import installed_path
from keylag.tools.programs import (
    GALERA_WAN,
    SWIFT_REGIONS,
    WAN,
    missing_packages,
)

PACKAGES = {**WAN, **GALERA_WAN, **SWIFT_REGIONS}
needs_swift = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path(TUN).exists()
    or not Path("/dev/loop-control").exists()
    or bool(missing_packages(PACKAGES))
    or installed_path(venvs.SWIFT, state_folder() / "tools") is None,
    reason=f"needs root, {TUN}, loop devices and `{venvs.SWIFT.command}`",
)
ROUND_TRIP_SECONDS = 0.15


def call(label: str, seconds: float, *, token: float, keystone: float = 0.0) -> Sample:
    """Return a call of an object with the breakdown of the proxy server."""
    cells = {("auth_token", "auth_token"): token, ("keystone", "auth_token"): keystone}
    timing = ServerTiming(seconds, {}, cells, {})
    return sample(label, seconds, timing=timing)


def test_figures_tell_calls_that_asked_keystone_from_others() -> None:
    found = summarise(
        2,
        [
            call("GET object", 0.1, token=0.001),
            call("GET object", 0.5, token=0.010, keystone=0.290),
            call("PUT object", 0.2, token=0.003),
            call("setup PUT container", 0.9, token=0.020, keystone=0.480),
            call("setup POST /v3/auth/tokens password", 0.3, token=0.0),
        ],
    )

    get = found.calls["GET object"]
    assert (get.count, get.failed) == (2, 0)
    assert get.mean_seconds.mid == pytest.approx(0.3)
    assert get.token_seconds == pytest.approx(0.1505)
    assert get.token_share == pytest.approx(0.1505 / 0.3)
    assert sorted(found.calls) == ["GET object", "PUT object"]
    assert found.validations == 2
    assert found.validation_seconds == pytest.approx(0.4)
    assert found.cached_seconds == pytest.approx(0.002)
    json.loads(json.dumps(found.as_json()), parse_constant=pytest.fail)


def test_a_mean_has_an_interval_from_two_values_on() -> None:
    assert intervals.mean([1.0]).high == float("inf")
    assert intervals.mean([1.0, 2.0]).high < float("inf")
    assert intervals.mean([0.1, 0.2, 0.3, 0.4, 0.5]).mid == pytest.approx(0.3)


def test_sets_are_those_of_the_article() -> None:
    assert {name: (one.regions, one.affinity) for name, one in SETS.items()} == {
        "set1": (1, False),
        "set2": (2, False),
        "set3": (2, True),
    }


def test_settings_are_kept_until_swift_stops(tmp_path: Path) -> None:
    options = SwiftOptions(keystone=FAR, cached_seconds=NOT_CACHED)
    options.write(tmp_path)

    assert SwiftOptions.read(tmp_path) == options
    with pytest.raises(LabError, match="Run `keylag lab swift-regions up`"):
        SwiftOptions.read(tmp_path / "other")


def test_commands_without_swift_name_the_one_that_starts_it(tmp_path: Path) -> None:
    for command in ("proxies", "set", "measure"):
        arguments = ["lab", "swift-regions", command, f"--state={tmp_path}"]
        ended = CliRunner().invoke(main, arguments)

        assert ended.exit_code == 1
        assert "Run `keylag lab swift-regions up`" in ended.output


def test_a_storage_node_has_a_server_of_each_kind(tmp_path: Path) -> None:
    host = Network(tmp_path, 2).sites[1].hosts[0]

    found = storage_servers(tmp_path, host)

    assert {one.kind: one.port for one in found} == dict(PORTS)
    assert found[0].service == "swift-object-b1"


@pytest.mark.parametrize("name", ["storage.conf", "proxy.conf", "swift.conf"])
def test_configurations_are_valid(name: str) -> None:
    parser = ConfigParser(interpolation=None, allow_no_value=True)

    parser.read_string((TEMPLATES / name).read_text())

    assert parser.sections()


def test_ports_of_a_process_are_those_of_its_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in listening_ports(os.getpid())
    assert port not in listening_ports(os.getpid())
    assert listening_ports(2**22 + 1) == set()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwiftRegions]:
    """Swift in both regions, each with what it prefers."""
    made = SwiftRegions(tmp_path_factory.mktemp("lab"))
    try:
        made.up(Link(ROUND_TRIP_SECONDS), SETS["set3"], lambda _: None)
        yield made
    finally:
        made.down()


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_objects_are_written_read_and_deleted_in_both_regions(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    for region in (1, 2):
        found = measure(lab, Load(region, 8), tmp_path / str(region))

        assert sorted(found.calls) == ["DELETE object", "GET object", "PUT object"]
        assert sum(one.failed for one in found.calls.values()) == 0
        assert found.calls["GET object"].mean_seconds.mid < ROUND_TRIP_SECONDS
        assert found.validations > 0
        assert found.cached_seconds > 0


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_a_far_keystone_makes_validations_longer(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    seconds = {}
    for keystone in (NEAR, FAR):
        lab.start_proxies(SwiftOptions(keystone=keystone))
        found = measure(lab, Load(2, 8), tmp_path / keystone)
        seconds[keystone] = found.validation_seconds

    assert seconds[FAR] > seconds[NEAR] + ROUND_TRIP_SECONDS / 2


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_down_unmounts_all_devices(lab: SwiftRegions) -> None:
    assert str(lab.folder) in mounts.MOUNTS.read_text()

    lab.down()

    assert str(lab.folder) not in mounts.MOUNTS.read_text()
