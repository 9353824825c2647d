"""A Galera cluster over two sites: its settings, its figures, and a short real run."""

import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from samples import sample
from test_jtl import BARE, FAILED, GOOD, HEADER, SETUP

from keylag.cli import main
from keylag.commands import lab_galera
from keylag.commands.lab_output import milliseconds
from keylag.experiment.interval import Interval
from keylag.jtl import Sample
from keylag.lab import intervals
from keylag.lab.galera import failures, haproxy, measurement, rally
from keylag.lab.galera.cluster import COUNT_EVENTS, Cluster
from keylag.lab.galera.donors import donors_since
from keylag.lab.galera.failures import (
    CLIENTS,
    FAILURES,
    NO_ANSWER,
    NOTICE_SECONDS,
    Answers,
    Healing,
    Period,
    judge,
    observe,
    silent_link,
)
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.measurement import (
    Latencies,
    Measured,
    measure,
    read_latencies,
)
from keylag.lab.galera.node import SYNCED, Node
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.galera.rally import (
    SCENARIOS,
    Iterations,
    RallyLoad,
    read_iterations,
    run_scenario,
)
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.galera.site_breakdown import break_down, query_site
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.network import Network
from keylag.lab.relay import TUN
from keylag.lab.wan import Wan
from keylag.state import state_folder
from keylag.tools import venvs
from keylag.tools.install import installed_path
from keylag.tools.programs import GALERA_WAN, WAN, missing_packages

PACKAGES = {**WAN, **GALERA_WAN}
needs_cluster = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(TUN).exists() or bool(missing_packages(PACKAGES)),
    reason=f"needs root, {TUN} and the packages {', '.join(PACKAGES)}",
)
needs_rally = pytest.mark.skipif(
    installed_path(venvs.RALLY, state_folder() / "tools") is None,
    reason=f"needs Rally: `{venvs.RALLY.command}`",
)
ROUND_TRIP_SECONDS = 0.15
NODES = 2
"""Of each site."""
SCRAPED_SECONDS = 30
"""Prometheus looks for targets every 5 s, and asks mysqld_exporter every 5 s."""
COUNT_LOG_INS = "SELECT COUNT(last_active_at) FROM keystone.user"


def invoke(*arguments: str) -> Result:
    """Run `keylag lab galera-wan`."""
    return CliRunner().invoke(main, ["lab", "galera-wan", *arguments])


def call(
    start_seconds: float, elapsed_seconds: float, code: str, method: str = "GET"
) -> Sample:
    """Return a call of a client."""
    return sample(
        f"{method} /v3/auth/tokens",
        elapsed_seconds,
        start_seconds=start_seconds,
        code=code,
        success=code.isdigit() and code != "500",
    )


def cluster(folder: Path, options: ClusterOptions) -> Cluster:
    """Return a cluster that does not run."""
    return Cluster(folder, Network(folder / "wan", 3), options)


def test_each_site_is_a_segment(tmp_path: Path) -> None:
    nodes = cluster(tmp_path, ClusterOptions()).nodes

    assert [one.name for one in nodes] == ["a1", "a2", "a3", "b1", "b2", "b3"]
    options = [one.provider_options(ClusterOptions()) for one in nodes]
    assert [one["gmcast.segment"] for one in options] == 3 * ["0"] + 3 * ["1"]


def test_without_segments_all_nodes_are_alike(tmp_path: Path) -> None:
    options = ClusterOptions(segments=False)

    for one in cluster(tmp_path, options).nodes:
        assert one.provider_options(options)["gmcast.segment"] == "0"


def test_nodes_replicate_at_the_addresses_of_their_hosts(tmp_path: Path) -> None:
    node = cluster(tmp_path, ClusterOptions()).find("b2")

    assert node
    assert node.replication_address == "10.64.2.2:4567"
    options = node.provider_options(ClusterOptions())
    assert options["gmcast.listen_addr"] == "tcp://10.64.2.2:4567"
    assert options["evs.suspect_timeout"] == "PT10S"


def test_a_program_that_becomes_another_one_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster(tmp_path, ClusterOptions()).nodes[0]
    found = iter([[], [7]])
    monkeypatch.setattr(Node, "pids", lambda _: next(found))

    assert node.require_pids() == [7]


def test_the_start_of_a_node_includes_the_search_for_its_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cluster(tmp_path, ClusterOptions())
    synced = {"local_state_comment": SYNCED}
    monkeypatch.setattr(Node, "start", lambda *_, **__: time.sleep(0.02))
    monkeypatch.setattr(Node, "status", lambda _: synced)

    assert found.start_node(found.nodes[0]) >= 0.02


def test_a_cluster_that_does_not_come_back_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="Not all nodes came back"):
        cluster(tmp_path, ClusterOptions()).wait_until_whole(time.monotonic())


def test_haproxy_spreads_connections_over_the_nodes_of_its_site(tmp_path: Path) -> None:
    site, _ = Network(tmp_path, 2).sites

    haproxy.write_config(tmp_path / "site-a", site.router, site.hosts)

    text = (tmp_path / "site-a" / haproxy.FILE).read_text()
    assert 'bind "127.0.0.1:${KEYLAG_HAPROXY_PORT}"' in text
    assert "server a1 10.64.1.1:3306 check" in text
    assert "server a2 10.64.1.2:3306 check" in text
    assert "10.64.2." not in text
    assert "timeout check 1s" in text
    assert 'bind "10.64.1.254:5000"\n  mode http\n' in text
    assert 'server keystone "127.0.0.1:${KEYLAG_KEYSTONE_PORT}"' in text


def test_haproxy_waits_longer_for_far_nodes(tmp_path: Path) -> None:
    near, far = Network(tmp_path, 2).sites

    haproxy.write_config(tmp_path, near.router, far.hosts, haproxy.FAR_CHECK_SECONDS)

    assert "timeout check 5s" in (tmp_path / haproxy.FILE).read_text()


def test_latencies_are_of_calls_that_succeeded(tmp_path: Path) -> None:
    samples = tmp_path / "samples.jtl"
    samples.write_text(HEADER + SETUP + BARE + FAILED)

    (found,) = read_latencies(tmp_path).values()

    assert (found.count, found.failed) == (1, 1)
    assert found.median.mid == pytest.approx(0.005)


def test_sql_of_calls_is_that_of_their_breakdown(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(HEADER + SETUP + GOOD + BARE)

    sql_seconds = [one.sql_seconds for one in read_latencies(tmp_path).values()]

    assert sql_seconds == [None, pytest.approx(0.25)]


def test_a_load_without_samples_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").touch()

    with pytest.raises(LabError, match="No call was answered"):
        read_latencies(tmp_path)


def test_a_median_has_an_interval_from_six_values_on() -> None:
    assert math.isnan(intervals.median([]).mid)
    assert intervals.median([1.0, 2.0, 3.0, 4.0]).high == math.inf
    found = intervals.median([one / 100 for one in range(100)])
    assert found.mid == pytest.approx(0.495)
    assert 0.38 < found.low < 0.47
    assert 0.52 < found.high < 0.61


def test_figures_without_a_limit_are_null_in_json() -> None:
    calls = {"POST": Latencies(1, 2, intervals.median([0.5]))}

    found = Measured(Link(), calls, 3, 4000.0, ("D1",)).as_json()

    assert found["calls"]["POST"] == {
        "count": 1,
        "failed": 2,
        "median_seconds": [None, 0.5, None],
        "sql_seconds": None,
    }
    assert found["bytes_per_write"] == 4000.0
    json.loads(json.dumps(found), parse_constant=pytest.fail)


def test_a_diagnosis_that_fails_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        message = "The calls could not be diagnosed."
        raise LabError(message)

    monkeypatch.setattr(measurement, "named_causes", fail)
    router = Network(tmp_path, 0).sites[0].router

    assert measurement.try_to_diagnose(tmp_path, router, 5) is None
    assert "could not be diagnosed" in capsys.readouterr().err


def test_commands_without_a_cluster_name_the_one_that_starts_it(tmp_path: Path) -> None:
    for command in (
        *(["status"], ["kill", "a1"], ["start", "a1"], ["set"], ["measure"]),
        *(["rally"], ["unplug", "a1"], ["plug", "a1"]),
    ):
        ended = invoke(*command, f"--state={tmp_path}")

        assert ended.exit_code == 1
        assert "Run `keylag lab galera-wan up`" in ended.output


def iteration(began: float, seconds: float, *error: str) -> dict[str, object]:
    """Return an iteration as Rally reports it."""
    action = {"name": "keystone_v3.create_user", "started_at": began}
    return {
        "timestamp": began,
        "duration": seconds,
        "error": list(error),
        "atomic_actions": [action | {"finished_at": began + seconds / 2}],
    }


def test_a_cluster_without_its_network_names_the_command_that_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash of the machine, which leaves the options of the cluster."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ClusterOptions().write(tmp_path)

    ended = invoke("status", f"--state={tmp_path}")

    assert ended.exit_code == 1
    assert "is incomplete. Run `keylag lab galera-wan up`" in ended.output


def test_each_iteration_at_the_same_time_has_a_user_of_its_own() -> None:
    context = RallyLoad(3, 2).workload()["context"]["users@openstack"]
    shared = RallyLoad(3, 2, users=1).workload()["context"]["users@openstack"]

    assert (context["users_per_tenant"], shared["users_per_tenant"]) == (2, 1)


def test_few_iterations_have_no_interval() -> None:
    assert milliseconds(intervals.median([1.0, 2.0, 3.0])) == ("2000", "-")
    assert milliseconds(Interval(0.9, 1.0, 1.2)) == ("1000", "900 to 1200")


def rally_report(*iterations: dict[str, object]) -> dict[str, object]:
    """Return a report of Rally with one workload."""
    workload = {"data": list(iterations)}
    return {"tasks": [{"subtasks": [{"workloads": [workload]}]}]}


def test_iterations_of_rally_are_in_the_order_they_began() -> None:
    report = rally_report(
        iteration(20.0, 2.0),
        iteration(10.0, 1.0),
        iteration(15.0, 9.0, "Conflict", "a user of this name", "a trace"),
    )

    found = read_iterations(report)

    assert found.seconds == (1.0, 2.0)
    assert found.errors == ("Conflict a user of this name",)
    assert found.actions == {"keystone_v3.create_user": (0.5, 1.0)}
    assert found.period == (10.0, 24.0)


def test_what_rally_says_names_the_largest_parts_and_what_is_outside() -> None:
    parts = {"sql": 0.2, "other": 0.01, "password_hash": 0.4, "orm": 0.05, "cache": 0.0}
    found = Iterations((1.0, 1.5), (), {}, (0.0, 9.0), parts)

    assert lab_galera.keystone_sentence("create-user", found) == (
        "A mean iteration of create-user: 400 ms password hash, 200 ms SQL, 50 ms ORM "
        "and 10 ms of other parts in Keystone, 590 ms outside of it. 0.1 of Keystone's "
        "2 workers were busy. So the time outside is Rally's, and a wait for a free "
        "one only with more than 2 iterations at the same time."
    )
    unknown = Iterations((1.0,), (), {}, (0.0, 9.0))
    assert "is not known" in lab_galera.keystone_sentence("create-user", unknown)
    assert unknown.as_json()["busy_workers"] is None


def test_what_rally_says_of_busy_workers_is_that_iterations_wait() -> None:
    parts = {"sql": 0.4, "password_hash": 0.5}
    found = Iterations((2.0,) * 20, (), {}, (0.0, 9.0), parts)

    told = lab_galera.keystone_sentence("create-user", found)

    assert found.as_json()["busy_workers"] == pytest.approx(2.0)
    assert "2.0 of Keystone's 2 workers were busy. So an iteration waits" in told


def test_a_period_of_few_seconds_is_not_broken_down(tmp_path: Path) -> None:
    router = Network(tmp_path, 0).sites[0].router

    with pytest.raises(LabError, match=r"3\.0 s are too short to break down"):
        break_down(tmp_path, router, 100.0, 103.0, without="DELETE")


def test_rally_without_a_prometheus_keeps_its_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "`promtool query` failed: connection refused"
        raise LabError(message)

    monkeypatch.setattr(rally, "break_down", fail)
    lab = GaleraWan(tmp_path)
    monkeypatch.setattr(Wan, "network", lambda self: Network(self.folder, 0))

    assert rally._in_keystone(lab, (0.0, 9.0)) == {}
    assert "connection refused" in capsys.readouterr().err


def test_rally_without_an_iteration_is_an_error() -> None:
    with pytest.raises(LabError, match="Rally ran no iteration"):
        read_iterations(rally_report())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GaleraWan]:
    """A cluster with two nodes a site."""
    made = GaleraWan(tmp_path_factory.mktemp("lab"), users=20)
    try:
        made.up(Link(), ClusterOptions(nodes=NODES), lambda _: None)
        yield made
    finally:
        made.down()


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_all_nodes_are_members(lab: GaleraWan) -> None:
    found = lab.status()

    assert list(found) == ["a1", "a2", "b1", "b2"]
    assert {one["cluster_size"] for one in found.values()} == {"4"}


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_the_prometheus_of_a_site_has_the_status_of_its_nodes(lab: GaleraWan) -> None:
    router = lab.wan.network().sites[1].router

    def values(metric: str) -> dict[str, float]:
        query = f'{metric}{{job="mysqld-exporter"}}'
        found = query_site(lab.folder, router, query, time.time())
        return {one.labels["instance"]: one.value for one in found}

    deadline = time.monotonic() + SCRAPED_SECONDS
    while len(values("mysql_up")) < NODES and time.monotonic() < deadline:
        time.sleep(1)

    for metric in ("mysql_up", "mysql_global_status_wsrep_ready"):
        assert values(metric) == {"b1": 1, "b2": 1}
    assert values("mysql_global_status_wsrep_cluster_size") == {"b1": 4, "b2": 4}
    assert values("mysql_galera_evs_repl_latency_sample_size").keys() == {"b1", "b2"}


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_a_revocation_waits_for_the_other_site_and_a_validation_does_not(
    lab: GaleraWan, tmp_path: Path
) -> None:
    near = measure(lab, Link(), 8, tmp_path / "near")
    far = measure(lab, Link(ROUND_TRIP_SECONDS), 8, tmp_path / "far")

    longer = {
        label.partition(" ")[0]: far.calls[label].median.mid - one.median.mid
        for label, one in near.calls.items()
    }
    assert longer["DELETE"] > ROUND_TRIP_SECONDS / 2
    assert longer["GET"] < ROUND_TRIP_SECONDS / 2
    assert far.writes > 0
    assert far.bytes_per_write
    assert far.failed == 0


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_clients_at_both_sites_write(lab: GaleraWan, tmp_path: Path) -> None:
    link = Link(ROUND_TRIP_SECONDS)
    found = measure(lab, link, 8, tmp_path / "load", both_sites=True)

    assert found.calls.keys() == found.second_site.keys()
    assert all(one.count for one in found.second_site.values())


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_forgotten_log_ins_are_the_first_of_a_day_again(
    lab: GaleraWan, tmp_path: Path
) -> None:
    node = lab.cluster().nodes[0]
    measure(lab, Link(), 8, tmp_path / "load")
    before = node.query(COUNT_LOG_INS)[0][0]

    lab.cluster().forget_log_ins()

    assert before > 0
    assert node.query(COUNT_LOG_INS)[0][0] == 0


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
@pytest.mark.parametrize("forget_data", [False, True])
def test_a_killed_node_comes_back(lab: GaleraWan, *, forget_data: bool) -> None:
    state = f"--state={lab.folder}"
    more = ["--forget-data"] if forget_data else []

    killed = invoke("kill", "b2", state)
    shown = lab.status()["b2"]
    started = invoke("start", "b2", state, *more)

    assert killed.exit_code == 0
    assert shown == {}
    assert started.exit_code == 0, started.output
    assert lab.status()["b2"]["local_state_comment"] == SYNCED


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_an_unplugged_node_leaves_the_cluster_and_comes_back(lab: GaleraWan) -> None:
    state = f"--state={lab.folder}"
    first = lab.cluster().nodes[0]

    unplugged = invoke("unplug", "b2", state)
    first.wait_until(lambda: first.status()["cluster_size"] == "3", NOTICE_SECONDS)
    plugged = invoke("plug", "b2", state)

    assert (unplugged.exit_code, plugged.exit_code) == (0, 0), plugged.output
    assert lab.status()["b2"]["local_state_comment"] == SYNCED
    assert first.status()["cluster_size"] == "4"


@needs_cluster
@needs_rally
@pytest.mark.stack
@pytest.mark.matrix
def test_rally_creates_users_over_the_link(lab: GaleraWan, tmp_path: Path) -> None:
    measure(lab, Link(ROUND_TRIP_SECONDS), 8, tmp_path / "load")

    for name in SCENARIOS:
        found = run_scenario(lab, name, tmp_path / name, RallyLoad(30, 5))
        assert found.errors == ()
        assert len(found.seconds) == 30
        assert min(found.actions["keystone_v3.create_user"]) > ROUND_TRIP_SECONDS
        assert found.keystone_seconds["sql"] > ROUND_TRIP_SECONDS
        assert found.outside_seconds > 0

    cluster = lab.cluster()
    cluster.limit_events(REVOCATION_EVENTS)
    assert cluster.nodes[0].query(COUNT_EVENTS)[0][0] == REVOCATION_EVENTS


def test_logs_name_the_donor_of_each_node_that_joined(tmp_path: Path) -> None:
    log = tmp_path / "node-a1.log"
    asked = "[Note] WSREP: Member 5.1 ({}) requested state transfer from '*any*'. "
    log.write_text(f"{asked.format('b1')}Selected 0.0 (a1)(SYNCED) as donor.\n")
    before = {log: log.stat().st_size}
    with log.open("ab") as file:
        for node, donor in (("b2", "a2"), ("b3", "a1"), ("b2", "a3")):
            line = f"{asked.format(node)}Selected 1.0 ({donor})(SYNCED) as donor."
            file.write(line.encode() + b"\xff\n")

    assert donors_since(before) == {"b2": "a3", "b3": "a1"}


def test_an_outcome_counts_what_clients_saw_from_the_failure_on() -> None:
    failure = FAILURES["link"]
    samples = [
        call(0.0, 0.1, "204", "DELETE"),
        call(9.9, 0.3, "200"),
        call(10.5, 4.0, "500", "DELETE"),
        call(10.6, 4.0, "Non HTTP response code: java.net.SocketException"),
        call(15.0, 0.5, "204", "DELETE"),
        call(16.0, 0.5, "200"),
    ]

    lost = Period(10.0, 15.0)

    found = judge(failure, samples, lost, Healing(3.0, {}), gained=1.0)

    assert (found.calls, found.failed) == (5, 2)
    assert found.failing_seconds == pytest.approx(0.1)
    assert found.codes == {"500": 1, NO_ANSWER: 1}
    assert found.meanwhile == {"DELETE": Answers(0, 1), "GET": Answers(1, 1)}
    assert found.longest_seconds == 4.0
    assert found.longest_gap_seconds == pytest.approx(15.5 - 10.2)
    assert (found.revoked, found.missing, found.hidden) == (2, 1, 1 + CLIENTS)


def test_a_site_that_does_not_notice_its_loss_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster(tmp_path, ClusterOptions())
    primary = {"cluster_status": failures.PRIMARY}
    monkeypatch.setattr(GaleraWan, "cluster", lambda _: made)
    monkeypatch.setattr(Node, "status", lambda _: primary)
    monkeypatch.setattr(Node, "pids", lambda _: [7])
    monkeypatch.setattr(failures, "NOTICE_SECONDS", 0)

    with pytest.raises(LabError, match="node-a1 is not ready after 0 s"):
        FAILURES["site-alone"].begin(GaleraWan(tmp_path))


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_clients_see_a_killed_node_and_no_revocation_is_lost(
    lab: GaleraWan, tmp_path: Path
) -> None:
    lab.wan.change(Link())

    found = observe(lab, FAILURES["near-node"], tmp_path / "load")

    assert found.calls > found.failed
    assert found.healing.donors.keys() == {"a2"}
    assert found.revoked > 0
    assert found.missing == 0


@needs_cluster
@pytest.mark.stack
@pytest.mark.matrix
def test_a_link_that_is_silent_for_a_moment_costs_no_call(
    lab: GaleraWan, tmp_path: Path
) -> None:
    """No node is suspected before `evs.suspect_timeout`, so calls only wait."""
    lab.wan.change(Link())

    found = observe(lab, silent_link(2.0), tmp_path / "load")

    assert found.failed == 0
    assert found.longest_seconds > 1.0
    assert found.missing == 0
