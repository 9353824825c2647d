"""Keystone with neighbours: their configuration and figures, and a short real run."""

import json
import math
import os
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from samples import sample

from keylag import processes
from keylag.cli import main
from keylag.jtl import Sample
from keylag.lab.iproute import LabError
from keylag.lab.neighbours import hdr_log
from keylag.lab.neighbours.cassandra import Cassandra, render_config
from keylag.lab.neighbours.host import (
    HostRecorder,
    Reading,
    compute_figures,
    parse_counters,
)
from keylag.lab.neighbours.lab import Neighbours
from keylag.lab.neighbours.levers import LEVERS
from keylag.lab.neighbours.measurement import (
    SHARES,
    measure,
    summarise,
    window_of,
)
from keylag.lab.neighbours.options import UNLIMITED, NeighbourOptions
from keylag.lab.neighbours.window import Window
from keylag.lab.neighbours.ycsb import Ycsb
from keylag.paths import CHECKOUT
from keylag.server_timing import ServerTiming
from keylag.stack_info import StackInfo
from keylag.state import state_folder
from keylag.tools import cassandra as tool
from keylag.tools.install import installed_path
from keylag.tools.programs import NEIGHBOURS, missing_packages

needs_cassandra = pytest.mark.skipif(
    bool(missing_packages(NEIGHBOURS))
    or installed_path(tool.TOOL, state_folder() / "tools") is None,
    reason=f"needs `{tool.COMMAND}`",
)
LOG = CHECKOUT / "keylag" / "tests" / "data" / "ycsb-read.hdr"
"""Two seconds of reads: YCSB printed 221 reads with a 90th percentile of 91967 µs, and
332 with 65791 µs."""
LOG_START = 1795691128.517
COUNTERS = """\
node_cpu_seconds_total{{cpu="0",mode="user"}} {user}
node_cpu_seconds_total{{cpu="0",mode="iowait"}} {iowait}
node_disk_reads_completed_total{{device="vda"}} 10.0
node_disk_read_time_seconds_total{{device="vda"}} 1.0
node_disk_writes_completed_total{{device="vda"}} {writes}
node_disk_write_time_seconds_total{{device="vda"}} {write_seconds}
node_disk_io_time_seconds_total{{device="vda"}} {busy}
node_disk_io_time_weighted_seconds_total{{device="vda"}} {weighted}
node_disk_io_time_weighted_seconds_total{{device="vdb"}} 99.0
node_pressure_io_waiting_seconds_total {waiting}
"""


def test_each_cassandra_has_files_and_ports_of_its_own(tmp_path: Path) -> None:
    text = render_config(tmp_path, "cassandra-1", {"clients": 9042, "internode": 7000})

    found = yaml.safe_load(text)
    addresses = {found["listen_address"], found["rpc_address"]}
    assert addresses == {"127.0.0.1"}
    assert (found["native_transport_port"], found["storage_port"]) == (9042, 7000)
    folders = [value for name, value in found.items() if name.endswith("_directory")]
    assert all(one.startswith(str(tmp_path)) for one in folders)
    assert len(folders) == 4


def test_a_database_without_saved_ports_accepts_no_connections(tmp_path: Path) -> None:
    one = Cassandra(tmp_path, 2)

    assert one.service == "cassandra-2"
    assert one._saved_ports() == {}
    assert one.pids() == []


@pytest.mark.parametrize(
    ("window", "count", "p90_us"),
    [(Window(0.0, 1.0), 221, 91967), (Window(0.5, 2.0), 332, 65791)],
)
def test_latencies_are_those_of_the_intervals_within_a_window(
    window: Window, count: int, p90_us: int
) -> None:
    within = Window(LOG_START + window.start, LOG_START + window.end)

    found = hdr_log.read(LOG.read_text(), within)

    assert found.counts.total() == count
    assert found.quantile_seconds(0.9) == pytest.approx(p90_us / 1e6, rel=0.001)
    assert found.per_second == pytest.approx(count, rel=0.03)


def test_intervals_of_a_window_are_summed_and_an_incomplete_line_is_left_out() -> None:
    whole = Window(LOG_START, LOG_START + 10)
    text = LOG.read_text()

    found = hdr_log.read(text + "1.982,0.999,0.176,HISTFAA", whole)

    assert found.counts.total() == 221 + 332
    assert found.seconds == pytest.approx(1.977)
    with pytest.raises(ValueError, match="no interval in this time"):
        hdr_log.read(text, Window(0.0, 1.0))


def test_without_operations_there_is_no_quantile() -> None:
    assert math.isnan(hdr_log.Latencies(1.0, Counter()).quantile_seconds(0.95))


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("HISTFAAAAB", "is damaged"),
        ("AAAAAQAAACh4nGNgQAHMUJoRSqfYf4AwAAyQAZg=", "unknown version"),
    ],
)
def test_damaged_histograms_are_refused(encoded: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        hdr_log.decode(encoded)


def test_a_client_that_ended_is_named(tmp_path: Path) -> None:
    client = Ycsb(tmp_path, Cassandra(tmp_path, 1))

    with pytest.raises(LabError, match="ycsb-1 ended"):
        client.figures(Window(0.0, 1.0))


def test_figures_of_a_tenant_are_those_of_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ycsb, "pids", lambda _: [4711])
    client = Ycsb(tmp_path, Cassandra(tmp_path, 1))
    client.folder.mkdir(parents=True)
    for name in ("READ", "UPDATE"):
        (client.folder / f"{name}.hdr").write_text(LOG.read_text())

    found = client.figures(Window(LOG_START, LOG_START + 10))

    assert found.operations_per_second == pytest.approx(2 * 553 / 1.977)
    assert found.p95_seconds["READ"] == found.p95_seconds["UPDATE"]
    json.loads(json.dumps(found.as_json()), parse_constant=pytest.fail)
    with pytest.raises(LabError, match="ycsb-1 has no results of these seconds"):
        client.figures(Window(0.0, 1.0))


def test_rows_count_as_written_if_ycsb_says_so_of_all(tmp_path: Path) -> None:
    client = Ycsb(tmp_path, Cassandra(tmp_path, 1))
    client.folder.mkdir(parents=True)
    assert not client._is_loaded(1000)

    client._loaded.write_text("[INSERT], Return=OK, 1000\n")
    assert client._is_loaded(1000)
    assert not client._is_loaded(10_000)


def test_tenants_that_start_later_keep_the_options_of_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[NeighbourOptions] = []
    monkeypatch.setattr(Neighbours, "up", lambda _, options, __: asked.append(options))
    monkeypatch.setattr(
        Neighbours, "set_neighbours", lambda _, options, __: asked.append(options)
    )
    monkeypatch.setattr(StackInfo, "url", lambda *_: "http://127.0.0.1:5000")
    words = ["lab", "neighbours"]
    state = f"--state={tmp_path}"

    options = ["--records=1000000", "--password-hash-rounds=4", "--no-monitoring"]
    up = CliRunner().invoke(main, [*words, "up", *options, state])
    asked[0].write(tmp_path)
    more = CliRunner().invoke(main, [*words, "tenants", "3", "--rate=0", state])

    assert (up.exit_code, more.exit_code) == (0, 0)
    assert asked[1] == NeighbourOptions(3, UNLIMITED, 1_000_000, 4, monitored=False)


def reading(seconds: float, **values: float) -> Reading:
    """Return the counters of a machine at a time."""
    return Reading(seconds, parse_counters(COUNTERS.format(**values)))


def test_figures_of_a_machine_are_differences_of_its_counters() -> None:
    names = (
        *("user", "iowait", "writes", "write_seconds", "busy", "weighted"),
        "waiting",
    )
    before = reading(100.0, **dict.fromkeys(names, 5.0))
    after = reading(
        110.0,
        user=8.0,
        iowait=6.0,
        writes=25.0,
        write_seconds=5.1,
        busy=7.5,
        weighted=25.0,
        waiting=6.0,
    )

    found = compute_figures(before, after, "vda")

    assert found.cpu == {"iowait": 0.25, "user": 0.75}
    assert found.disk_queue == pytest.approx(2.0)
    assert found.disk_utilisation == pytest.approx(0.25)
    assert found.write_seconds == pytest.approx(0.005)
    assert (found.read_seconds, found.flush_seconds) == (0.0, 0.0)
    assert found.requests_per_second == pytest.approx(2.0)
    assert found.pressure["io_waiting"] == pytest.approx(0.1)
    assert found.pressure["memory_stalled"] == 0.0
    json.dumps(found.as_json())


def test_a_disk_without_counters_is_an_error() -> None:
    names = ("user", "iowait", "writes", "write_seconds", "busy", "weighted", "waiting")
    recorder = HostRecorder()
    recorder._readings = [
        reading(second, **dict.fromkeys(names, second)) for second in (1.0, 2.0)
    ]

    assert recorder.figures(Window(0.0, 3.0), "vda").disk_queue == 1.0
    with pytest.raises(LabError, match="loop0 has no counters"):
        recorder.figures(Window(0.0, 3.0), "loop0")


def call(
    label: str, seconds: float, *, start: float = 0.0, success: bool = True
) -> Sample:
    """Return a token call, half of whose time is SQL."""
    cells = {("sql", "validate"): seconds / 2, ("wsgi", "other"): seconds / 2}
    timing = ServerTiming(seconds, {}, cells, {})
    return sample(label, seconds, start_seconds=start, success=success, timing=timing)


def test_calls_have_quantiles_and_the_time_of_each_category() -> None:
    log_in = "POST /v3/auth/tokens password"
    calls = [call(log_in, 0.1 * number) for number in range(1, 10)]
    validation = "GET /v3/auth/tokens"

    found = summarise([*calls, call(validation, 9.0, success=False)])

    assert sorted(found) == [validation, log_in]
    one = found[log_in]
    assert (one.count, one.failed) == (9, 0)
    assert one.p50_seconds.mid == pytest.approx(0.5)
    assert one.p50_seconds.low < 0.5 < one.p50_seconds.high
    assert one.p95_seconds.mid == pytest.approx(0.86)
    assert one.categories["sql"]["p50"] == pytest.approx(0.25)
    assert (found[validation].count, found[validation].failed) == (0, 1)
    documents = [one.as_json() for one in found.values()]
    json.loads(json.dumps(documents), parse_constant=pytest.fail)


def test_the_time_of_a_load_is_that_of_its_calls() -> None:
    calls = [call("GET", 0.5, start=10.0), call("GET", 2.0, start=9.0)]

    assert window_of(calls) == Window(9.0, 11.0)
    with pytest.raises(LabError, match="sent no calls"):
        window_of([])


def test_commands_without_keystone_name_the_one_that_starts_it(tmp_path: Path) -> None:
    for words in (["tenants", "1"], ["set"], ["measure"], ["status"]):
        arguments = ["lab", "neighbours", *words, f"--state={tmp_path}"]
        out = [f"--out={tmp_path / 'out'}"] if words == ["measure"] else []
        ended = CliRunner().invoke(main, [*arguments, *out])

        assert ended.exit_code == 1
        assert "Run `keylag lab neighbours up`" in ended.output


def test_down_without_a_laboratory_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "none"

    ended = CliRunner().invoke(main, ["lab", "neighbours", "down", f"--state={folder}"])

    assert ended.exit_code == 0
    assert ended.output == "No Keystone runs.\n"
    assert not folder.exists()


def test_more_tenants_than_the_paper_had_are_refused(tmp_path: Path) -> None:
    arguments = ["lab", "neighbours", "tenants", "4", f"--state={tmp_path}"]

    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_an_unknown_lever_is_refused(tmp_path: Path) -> None:
    arguments = ["lab", "neighbours", "set", "warp", f"--state={tmp_path}"]
    ended = CliRunner().invoke(main, arguments)

    assert ended.exit_code == 2
    assert "'ionice'" in ended.output


def test_the_plans_of_experiments_have_an_arm_for_each_lever() -> None:
    command = "keylag lab neighbours set"
    found = []
    for path in (CHECKOUT / "experiments").glob("neighbours-*.toml"):
        plan = tomllib.loads(path.read_text())
        switches = {name: arm["switch"] for name, arm in plan["arms"].items()}
        of_base = switches.pop(plan["base"])
        assert of_base.startswith(command)
        assert {*of_base.removeprefix(command).split()} <= {*LEVERS}
        assert switches == {name: f"{of_base} {name}" for name in switches}
        found += switches

    assert sorted(found) == sorted(LEVERS)


@pytest.mark.parametrize("name", ["neighbours-disk", "neighbours-scheduler"])
def test_plans_for_the_disk_decide_by_the_call_that_waits_for_it(name: str) -> None:
    plan = tomllib.loads((CHECKOUT / "experiments" / f"{name}.toml").read_text())

    assert plan["decision"]["method"] == "DELETE"
    assert plan["load"]["properties"]["revoke_percent"] == SHARES["revoke"]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Neighbours]:
    """Keystone with one tenant."""
    made = Neighbours(tmp_path / "lab")
    try:
        made.up(NeighbourOptions(1), lambda _: None)
        yield made
    finally:
        made.down()


@needs_cassandra
@pytest.mark.stack
@pytest.mark.matrix
def test_a_tenant_and_levers_beside_keystone(lab: Neighbours, tmp_path: Path) -> None:
    found = measure(lab, 8, tmp_path / "alone")

    assert sum(one.failed for one in found.calls.values()) == 0
    assert [one.tenant for one in found.tenants] == [1]
    assert found.tenants[0].operations_per_second > 0
    assert found.host.cpu["user"] > 0

    if os.geteuid() == 0:
        before = Path("/proc/sys/vm/dirty_expire_centisecs").read_text()
        lab.switches().switch_to(["write-back-expiry", "ionice"])
        assert Path("/proc/sys/vm/dirty_expire_centisecs").read_text() == "12000\n"
        lab.switches().switch_to([])
        assert Path("/proc/sys/vm/dirty_expire_centisecs").read_text() == before

    lab.set_neighbours(NeighbourOptions(0), lambda _: None)
    assert lab.running == []
    assert measure(lab, 8, tmp_path / "none").tenants == []
    lab.up(NeighbourOptions(0, monitored=False), lambda _: None)
    left = processes.find_processes(stack=lab.stack.resolve())
    assert {one.service for one in left} == {"mariadb", "memcached", "keystone"}
    assert "tenant 1" not in lab.down()
