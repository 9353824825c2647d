"""Swift in two regions: its settings, its figures, and a short real run."""

import json
import os
import socket
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from samples import sample

from keylag.cli import main
from keylag.commands import lab_swift
from keylag.jtl import Sample
from keylag.lab import intervals, mounts
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.network import Network
from keylag.lab.relay import TUN
from keylag.lab.settings import RELAY, Settings
from keylag.lab.swift import bench
from keylag.lab.swift.bench import BenchLoad, Rate, Rates, read_rates, run_bench
from keylag.lab.swift.lab import TOKEN_SETTINGS, SwiftRegions
from keylag.lab.swift.measurement import CLIENTS, SUBJECTS, Load, measure, summarise
from keylag.lab.swift.options import (
    FAR,
    NEAR,
    OWN,
    SETS,
    SHARED,
    TOKEN_CACHES,
    SwiftOptions,
)
from keylag.lab.swift.rings import PORTS
from keylag.lab.swift.servers import (
    TEMPLATES,
    listening_ports,
    proxy_server,
    storage_servers,
)
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
LINK = Link(ROUND_TRIP_SECONDS)


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
    assert get.validating_share == pytest.approx(0.3 / 0.5)
    assert found.calls["PUT object"].validating_share == 0
    assert sorted(found.calls) == ["GET object", "PUT object"]
    assert found.validations == 2
    assert found.validation_seconds == pytest.approx(0.4)
    assert found.cached_seconds == pytest.approx(0.002)
    json.loads(json.dumps(found.as_json()), parse_constant=pytest.fail)


BENCH_LOG = """\
swift-bench 2026-11-27 05:54:21,000 INFO Auth version: 3
swift-bench 2026-11-27 05:54:23,000 INFO 6 PUTS [0 failures], 3.0/s
swift-bench 2026-11-27 05:54:31,000 INFO 32 PUTS **FINAL** [1 failures], 3.2/s
swift-bench 2026-11-27 05:54:31,500 INFO Auth version: 3
swift-bench 2026-11-27 05:54:38,000 INFO 96 GETS **FINAL** [0 failures], 13.9/s
swift-bench 2026-11-27 05:54:46,000 INFO 31 DEL **FINAL** [0 failures], 4.1/s
"""


def test_rates_are_those_of_the_last_lines_of_swift_bench() -> None:
    assert read_rates(BENCH_LOG) == {
        "PUT": Rate(32, 1, 3.2),
        "GET": Rate(96, 0, 13.9),
        "DELETE": Rate(31, 0, 4.1),
    }


@pytest.mark.parametrize(
    ("written", "replacement", "method"),
    [
        ("[1 failures]", "[32 failures]", "PUT"),
        ("96 GETS", "0 GETS", "GET"),
        ("DEL **FINAL**", "DEL", "DELETE"),
        ("4.1/s", "0.0/s", "DELETE"),
    ],
)
def test_a_kind_of_request_without_a_rate_is_an_error(
    written: str, replacement: str, method: str
) -> None:
    with pytest.raises(LabError, match=f"swift-bench has no rate of {method}"):
        read_rates(BENCH_LOG.replace(written, replacement))


def test_a_swift_bench_that_fails_is_an_error_with_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    command = ["sh", "-c", "echo Authorization Failure >&2; exit 1"]

    with pytest.raises(LabError, match=r"failed.*\nAuthorization Failure"):
        bench._run(command, {"PATH": os.environ["PATH"]}, tmp_path / bench.LOG)


def test_bench_prints_the_rate_of_each_kind_of_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[BenchLoad] = []

    def run(_: SwiftRegions, load: BenchLoad, __: Path) -> Rates:
        sent.append(load)
        return read_rates(BENCH_LOG)

    monkeypatch.setattr(SwiftRegions, "link", lambda _: Link(0.277))
    monkeypatch.setattr(lab_swift, "run_bench", run)
    options = ["--region=2", "--clients=16", "--objects=128", "--gets=384"]
    command = ["lab", "swift-regions", "bench", *options]

    table = CliRunner().invoke(main, [*command, f"--out={tmp_path / 'table'}"])
    form = ["--output=json", f"--out={tmp_path / 'json'}"]
    document = CliRunner().invoke(main, [*command, *form])

    assert sent == 2 * [BenchLoad(region=2, clients=16, objects=128, gets=384)]
    assert ["PUT", "32", "1", "3.2"] in [
        one.split() for one in table.output.splitlines()
    ]
    kept = (tmp_path / "json" / "measured.json").read_text()
    found = json.loads(document.stdout)
    assert found == json.loads(kept)
    assert (found["region"], found["clients"]) == (2, 16)
    assert found["rates"]["GET"] == {"requests": 96, "failed": 0, "per_second": 13.9}


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
    options = SwiftOptions(keystone=FAR, token_cache=OWN)
    options.write(tmp_path)

    assert SwiftOptions.read(tmp_path) == options
    with pytest.raises(LabError, match="Run `keylag lab swift-regions up`"):
        SwiftOptions.read(tmp_path / "other")


def test_each_place_of_tokens_has_settings() -> None:
    assert tuple(TOKEN_SETTINGS) == TOKEN_CACHES
    assert "swift.cache" not in TOKEN_SETTINGS[OWN].template
    assert TOKEN_SETTINGS[SHARED].substitute(seconds=7) == (
        "cache = swift.cache\ntoken_cache_time = 7"
    )


def test_proxies_get_their_processes_and_place_of_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SwiftOptions] = []
    monkeypatch.setattr(
        SwiftRegions, "start_proxies", lambda _, options: started.append(options)
    )
    monkeypatch.setattr(SwiftRegions, "link", lambda _: LINK)
    SETS["set2"].write(tmp_path)
    command = ["lab", "swift-regions", "proxies", f"--state={tmp_path}"]

    ended = CliRunner().invoke(main, [*command, "--token-cache=own", "--processes=3"])

    assert ended.exit_code == 0, ended.output
    expected = replace(SETS["set2"], token_cache=OWN, proxy_processes=3)
    assert started == [expected]

    expected.write(tmp_path)
    CliRunner().invoke(main, [*command, "--keystone=far"])

    assert started[1:] == [replace(expected, keystone=FAR)]


def test_commands_without_swift_name_the_one_that_starts_it(tmp_path: Path) -> None:
    for command in ("proxies", "set", "measure", "bench"):
        arguments = ["lab", "swift-regions", command, f"--state={tmp_path}"]
        ended = CliRunner().invoke(main, arguments)

        assert ended.exit_code == 1
        assert "Run `keylag lab swift-regions up`" in ended.output


def test_a_storage_node_has_a_server_of_each_kind(tmp_path: Path) -> None:
    host = Network(tmp_path, 2).sites[1].hosts[0]

    found = storage_servers(tmp_path, host)

    assert {one.kind: one.port for one in found} == dict(PORTS)
    assert found[0].service == "swift-object-b1"


def test_a_proxy_server_that_answers_nobody_is_not_ready(tmp_path: Path) -> None:
    assert not proxy_server(tmp_path, Network(tmp_path, 1).sites[0].router).is_ready()


def test_up_sets_how_long_a_write_waits_for_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SwiftOptions] = []

    def start(
        _: SwiftRegions, link: Link, options: SwiftOptions, __: object
    ) -> Settings:
        started.append(options)
        return Settings(4, RELAY, link)

    monkeypatch.setattr(SwiftRegions, "up", start)
    command = ["lab", "swift-regions", "up", f"--state={tmp_path}"]

    usual = CliRunner().invoke(main, command)
    short = CliRunner().invoke(main, [*command, "--container-update-timeout=50ms"])

    assert (usual.exit_code, short.exit_code) == (0, 0), short.output
    assert "The link has 277 ms, loss 0%, 6 Mbit/s, by a relay" in usual.output
    assert [one.container_update_seconds for one in started] == [1.0, 0.05]
    server = storage_servers(tmp_path, Network(tmp_path, 1).sites[0].hosts[0])[0]
    config = SwiftRegions(tmp_path)._storage_config(server, started[1])
    assert "container_update_timeout = 0.05\n" in config


@pytest.mark.skipif(os.geteuid() != 0, reason="a laboratory needs root")
def test_three_replicas_need_three_storage_nodes(tmp_path: Path) -> None:
    command = ["lab", "swift-regions", "up", f"--state={tmp_path}", "--set=set1"]

    ended = CliRunner().invoke(main, [*command, "--nodes=2"])

    assert ended.exit_code == 2
    assert "3 replicas need as many storage nodes" in ended.output
    assert not (tmp_path / "wan").exists()


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
    """Swift in both regions, each with what it prefers, and two storage nodes."""
    made = SwiftRegions(tmp_path_factory.mktemp("lab"), storage_nodes=2)
    try:
        made.up(LINK, SETS["set3"], lambda _: None)
        yield made
    finally:
        made.down()


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_objects_are_written_read_and_deleted_in_both_regions(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    """At two round trips; a read does not pass the link at either."""
    for region, link in product((1, 2), (LINK, Link())):
        lab.keystones.wan.change(link)
        found = measure(lab, Load(region, 8), tmp_path / f"{region}-{link}")

        assert sorted(found.calls) == ["DELETE object", "GET object", "PUT object"]
        assert sum(one.failed for one in found.calls.values()) == 0
        assert found.calls["GET object"].mean_seconds.mid < ROUND_TRIP_SECONDS
        assert found.validations > 0
        assert found.cached_seconds > 0


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_swift_bench_has_rates_in_both_regions(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    for region in (1, 2):
        load = BenchLoad(region, clients=4, objects=12, gets=40)

        found = run_bench(lab, load, tmp_path / str(region))

        assert {name: one.requests for name, one in found.items()} == {
            "PUT": 12,
            "GET": 40,
            "DELETE": 12,
        }
        assert sum(one.failed for one in found.values()) == 0
        assert found["GET"].per_second > found["PUT"].per_second


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_a_far_keystone_makes_validations_longer(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    lab.keystones.wan.change(LINK)
    seconds = {}
    for keystone in (NEAR, FAR):
        lab.start_proxies(SwiftOptions(keystone=keystone))
        found = measure(lab, Load(2, 8), tmp_path / keystone)
        seconds[keystone] = found.validation_seconds

    assert seconds[FAR] > seconds[NEAR] + ROUND_TRIP_SECONDS / 2


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_processes_that_share_no_cache_validate_each_token_themselves(
    lab: SwiftRegions, tmp_path: Path
) -> None:
    validations = {}
    for cache in (SHARED, OWN):
        lab.start_proxies(SwiftOptions(token_cache=cache, proxy_processes=CLIENTS))
        found = measure(lab, Load(1, 8), tmp_path / cache)
        validations[cache] = found.validations

    assert validations[SHARED] == SUBJECTS
    assert validations[OWN] > SUBJECTS


@needs_swift
@pytest.mark.stack
@pytest.mark.matrix
def test_down_unmounts_all_devices(lab: SwiftRegions) -> None:
    assert str(lab.folder) in mounts.MOUNTS.read_text()

    lab.down()

    assert str(lab.folder) not in mounts.MOUNTS.read_text()
