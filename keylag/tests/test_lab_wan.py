"""Two sites in network namespaces of their own, and the link between them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import psutil
import pytest
from click.testing import CliRunner, Result

from keylag.cli import main
from keylag.lab import accuracy, iproute, netem
from keylag.lab.iproute import LabError, command_in, list_namespaces
from keylag.lab.link import Link
from keylag.lab.network import Network, namespace_prefix
from keylag.lab.relay import TUN, Relay
from keylag.lab.settings import FILE, NETEM, RELAY, Settings, write_settings
from keylag.lab.wan import Wan
from keylag.tools.programs import WAN, missing_packages

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(TUN).exists() or bool(missing_packages(WAN)),
    reason=f"needs root, {TUN} and the packages {', '.join(WAN)}",
)
ROUND_TRIP_SECONDS = 0.12
HAS_NETEM = netem.has_netem
SOCKETS: list[socket.socket] = []
"""Open as long as the thread of a relay waits for them."""


def invoke(*arguments: str) -> Result:
    """Run `keylag lab wan`."""
    return CliRunner().invoke(main, ["lab", "wan", *arguments])


@pytest.fixture(autouse=True)
def without_netem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the relay delay packets, also where the kernel has netem."""
    monkeypatch.setattr(netem, "has_netem", lambda _: False)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Wan]:
    """A network of two hosts a site, with a round trip."""
    made = Wan(tmp_path / "lab")
    try:
        made.up(2, Link(ROUND_TRIP_SECONDS))
        yield made
    finally:
        made.down()


def connect_seconds(lab: Wan) -> float:
    """Return the shortest of some handshakes from a1 with a port of b1's network."""
    near, far = (site.hosts[0] for site in lab.network().sites)
    program = (
        "import socket, time\n"
        "def once():\n"
        "    begun = time.monotonic()\n"
        f"    try: socket.create_connection(('{far.address}', 9), 5)\n"
        "    except ConnectionRefusedError: pass\n"
        "    return time.monotonic() - begun\n"
        "print(min(once() for _ in range(5)))\n"
    )
    return float(iproute.run(*command_in(near.namespace, ["python3", "-c", program])))


def test_the_relay_carries_packets_both_ways() -> None:
    (first, far_first), (second, far_second) = (
        socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)
    )
    for one in (far_first, far_second):
        one.settimeout(0)
    SOCKETS.extend((first, far_first, second, far_second))
    relay = Relay([far_first.fileno(), far_second.fileno()], Link(0.002))
    Thread(target=relay.run, daemon=True).start()

    first.send(b"there")
    second.send(b"back")

    for one in (first, second):
        one.settimeout(5)
    assert second.recv(100) == b"there"
    assert first.recv(100) == b"back"


@needs_namespaces
@pytest.mark.stack
def test_a_handshake_takes_a_round_trip(lab: Wan) -> None:
    assert ROUND_TRIP_SECONDS <= connect_seconds(lab) < 2 * ROUND_TRIP_SECONDS


@needs_namespaces
@pytest.mark.stack
def test_the_link_changes_while_it_runs(lab: Wan) -> None:
    lab.change(Link(3 * ROUND_TRIP_SECONDS))

    assert connect_seconds(lab) >= 3 * ROUND_TRIP_SECONDS
    assert lab.find() == Settings(2, RELAY, Link(3 * ROUND_TRIP_SECONDS))


@needs_namespaces
@pytest.mark.stack
def test_netem_delays_packets_where_the_kernel_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netem, "has_netem", HAS_NETEM)
    lab = Wan(tmp_path)
    try:
        settings = lab.up(1, Link(ROUND_TRIP_SECONDS))
        if settings.mechanism != NETEM:
            pytest.skip("this kernel has no netem")

        assert connect_seconds(lab) >= ROUND_TRIP_SECONDS
        lab.change(Link())
        assert connect_seconds(lab) < ROUND_TRIP_SECONDS
    finally:
        lab.down()


@needs_namespaces
@pytest.mark.stack
def test_a_lost_site_answers_nothing(lab: Wan) -> None:
    lab.change(Link(loss_ratio=1.0))

    near, far = (site.hosts[0] for site in lab.network().sites)
    with pytest.raises(LabError, match="netns exec"):
        iproute.run(*command_in(near.namespace, ["ping", "-c1", "-W1", far.address]))


@needs_namespaces
@pytest.mark.stack
@pytest.mark.slow
def test_a_measurement_without_an_answer_names_the_hosts(
    lab: Wan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "PINGS", 1)
    lost = Link(loss_ratio=1.0)
    lab.change(lost)

    with pytest.raises(LabError, match="No ping from a1 to b1 was answered"):
        accuracy.measure(lab.network(), lost)


@needs_namespaces
@pytest.mark.stack
def test_an_unplugged_host_answers_nothing_until_it_is_plugged_in(lab: Wan) -> None:
    (near, other) = lab.network().sites[0].hosts
    ping = command_in(near.namespace, ["ping", "-c1", "-W1", other.address])

    lab.unplug(other.name)
    with pytest.raises(LabError, match="netns exec"):
        iproute.run(*ping)
    lab.plug(other.name)

    iproute.run(*ping)
    with pytest.raises(LabError, match="a9 is no host"):
        lab.unplug("a9")


@needs_namespaces
@pytest.mark.stack
def test_hosts_of_a_site_are_near_and_the_outside_is_out_of_reach(lab: Wan) -> None:
    (site, _) = lab.network().sites
    near, other = site.hosts

    iproute.run(*command_in(near.namespace, ["ping", "-c1", "-W1", other.address]))

    addresses = [one for ones in psutil.net_if_addrs().values() for one in ones]
    outside = next(
        (
            one.address
            for one in addresses
            if one.family == socket.AF_INET and not one.address.startswith("127.")
        ),
        "192.0.2.1",
    )
    with pytest.raises(LabError):
        iproute.run(*command_in(near.namespace, ["ping", "-c1", "-W1", outside]))


@needs_namespaces
@pytest.mark.stack
def test_traffic_counts_what_passes_the_link(lab: Wan) -> None:
    before = lab.traffic()["a"]

    connect_seconds(lab)

    assert lab.traffic()["a"].packets >= before.packets + 5


@needs_namespaces
@pytest.mark.stack
def test_down_ends_what_runs_on_hosts_and_leaves_nothing(tmp_path: Path) -> None:
    lab = Wan(tmp_path)
    lab.up(1, Link())
    (site, _) = lab.network().sites
    program = ["sh", "-c", "echo sleeping; exec sleep 600"]
    sleeping = subprocess.Popen(
        command_in(site.hosts[0].namespace, program),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert sleeping.stdout
    assert sleeping.stdout.readline() == b"sleeping\n"

    removed = lab.down()

    assert len(removed) == 5
    assert not psutil.pid_exists(sleeping.pid)
    assert not list_namespaces(namespace_prefix(tmp_path))
    assert lab.relay_pids() == []
    assert lab.down() == []


@needs_namespaces
@pytest.mark.stack
def test_up_repairs_a_network_after_a_crash(lab: Wan) -> None:
    (relay,) = lab.relay_pids()
    process = psutil.Process(relay)
    process.kill()
    process.wait(5)
    with pytest.raises(LabError, match="not complete"):
        lab.network()

    lab.up(2, Link(ROUND_TRIP_SECONDS))

    assert lab.relay_pids() != [relay]
    assert connect_seconds(lab) >= ROUND_TRIP_SECONDS


@needs_namespaces
@pytest.mark.stack
@pytest.mark.parametrize("separator", [[], ["--"]])
def test_exec_runs_a_program_on_a_host(lab: Wan, separator: list[str]) -> None:
    keylag = str(Path(sys.executable).with_name("keylag"))
    command = [keylag, "lab", "wan", "exec", f"--state={lab.folder}", "b1", *separator]

    told = subprocess.run(
        [*command, "ip", "-brief", "address"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ended = subprocess.run([*command, "sh", "-c", "exit 7"], check=False)

    assert "10.64.2.1/32" in told
    assert ended.returncode == 7


@needs_namespaces
@pytest.mark.stack
def test_measure_compares_the_link_with_its_settings(
    lab: Wan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PINGS", 5), ("HANDSHAKES", 3), ("TRANSFER_SECONDS", 1)):
        monkeypatch.setattr(f"keylag.lab.accuracy.{name}", value)
    lab.change(Link(ROUND_TRIP_SECONDS, rate_bits_per_second=2e6))

    told = invoke("measure", f"--state={lab.folder}", "--output=json")

    assert told.stdout, told.output
    ping, handshake, rate = json.loads(told.stdout)
    assert ping["measured"] >= ROUND_TRIP_SECONDS
    assert handshake["measured"] >= ROUND_TRIP_SECONDS
    assert 1e6 < rate["measured"] < 2.2e6


def test_a_handshake_that_lost_a_packet_says_nothing_of_the_round_trip() -> None:
    assert accuracy.median_without_losses([0.03, 0.04, 0.05, 1.04, 1.05]) == 0.04
    assert accuracy.median_without_losses([1.04]) == 1.04


@needs_namespaces
@pytest.mark.stack
def test_measure_finds_jitter_and_loss(
    lab: Wan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("JITTER_PINGS", 60), ("LOSS_PINGS", 500)):
        monkeypatch.setattr(f"keylag.lab.accuracy.{name}", value)
    monkeypatch.setattr(accuracy, "JITTER_HANDSHAKES", 100)
    link = Link(0.04, jitter_seconds=0.04, loss_ratio=0.1)
    lab.change(link)

    figures = {one.name: one for one in accuracy.measure(lab.network(), link)}

    handshake = figures[accuracy.HANDSHAKE_TIME]
    assert 0.03 < handshake.measured < 0.05
    jitter, loss = figures[accuracy.JITTER], figures[accuracy.LOSS]
    assert 0.02 < jitter.measured < 0.08
    assert jitter.tolerance < 0.02
    assert 0.04 < loss.measured < 0.2
    assert loss.tolerance < 0.05


@needs_namespaces
@pytest.mark.stack
def test_up_with_other_hosts_keeps_the_network_that_runs(lab: Wan) -> None:
    with pytest.raises(LabError, match="2 hosts a site runs already"):
        lab.up(3, Link())

    assert lab.is_complete()


@needs_namespaces
@pytest.mark.stack
def test_down_works_without_the_folder_of_a_crashed_network(tmp_path: Path) -> None:
    lab = Wan(tmp_path)
    lab.up(1, Link())
    (tmp_path / FILE).unlink()

    assert len(lab.down()) == 5
    assert lab.relay_pids() == []


@needs_namespaces
@pytest.mark.stack
def test_a_failed_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keylag.lab.wan.DEVICES", ("lo", "wan-b"))
    monkeypatch.setattr("keylag.lab.wan.START_SECONDS", 2)

    with pytest.raises(LabError, match="The relay did not start"):
        Wan(tmp_path).up(1, Link())

    assert not list_namespaces(namespace_prefix(tmp_path))


@needs_namespaces
@pytest.mark.stack
def test_two_networks_run_side_by_side(lab: Wan, tmp_path: Path) -> None:
    other = Wan(tmp_path / "other")
    try:
        other.up(1, Link())
        assert connect_seconds(other) < ROUND_TRIP_SECONDS
        assert connect_seconds(lab) >= ROUND_TRIP_SECONDS
    finally:
        other.down()

    assert connect_seconds(lab) >= ROUND_TRIP_SECONDS


@needs_namespaces
@pytest.mark.stack
def test_commands_start_change_show_and_remove_a_network(tmp_path: Path) -> None:
    state = f"--state={tmp_path}"
    try:
        started = invoke("up", state, "--hosts=1", "--round-trip=10ms")
        changed = invoke("set", state, "--loss=1%")
        shown = invoke("status", state, "--output=json")
    finally:
        removed = invoke("down", state)

    assert "10 ms, loss 0%, unlimited" in started.output
    assert "10 ms, loss 1%, unlimited" in changed.output
    found = json.loads(shown.output)
    assert found["link"]["loss_ratio"] == 0.01
    assert [one["name"] for one in found["hosts"]] == ["a", "a1", "b", "b1"]
    assert "Removed 5 namespaces" in removed.output
    assert "No network is running" in invoke("down", state).output


def test_hosts_have_names_and_addresses_of_their_site(tmp_path: Path) -> None:
    network = Network(tmp_path, 2)

    assert network.names == ["a", "a1", "a2", "b", "b1", "b2"]
    found = network.find("b2")
    assert found
    assert found.address == "10.64.2.2"
    assert found.namespace == f"{namespace_prefix(tmp_path)}b2"
    assert network.find("c1") is None


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("up", "--round-trip=100"), "100 has no known unit. Use one like 277ms"),
        (("up", "--loss=0.1"), "Use one like 0.5%"),
        (("up", "--rate=6"), "Use one like 6Mbit"),
        (("up", "--jitter=5ms"), "jitter is at most as long as the round trip"),
        (("up", "--hosts=0"), "range"),
    ],
)
def test_wrong_options_are_named(
    tmp_path: Path, arguments: tuple[str, ...], advice: str
) -> None:
    ended = invoke(*arguments, f"--state={tmp_path}")

    assert ended.exit_code == 2
    assert advice in " ".join(ended.output.split())


def test_other_users_learn_that_it_needs_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    ended = invoke("up", f"--state={tmp_path}")

    assert ended.exit_code == 1
    assert "needs root: run the command with sudo" in ended.output


@pytest.mark.parametrize(
    "arguments", [("status",), ("set", "--loss=1%"), ("measure",), ("exec", "a1", "id")]
)
def test_other_users_do_not_take_a_network_of_root_for_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    write_settings(tmp_path, Settings(1, RELAY, Link()))
    monkeypatch.setattr(iproute, "list_namespaces", lambda prefix: [f"{prefix}a"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    ended = invoke(arguments[0], f"--state={tmp_path}", *arguments[1:])

    assert ended.exit_code == 1
    assert "needs root: run the command with sudo" in ended.output


def test_commands_without_a_network_name_the_one_that_starts_it(tmp_path: Path) -> None:
    for command in ("status", "set", "measure"):
        ended = invoke(command, f"--state={tmp_path}")

        assert ended.exit_code == 1
        assert "Run `keylag lab wan up`" in ended.output


def test_damaged_settings_are_an_error(tmp_path: Path) -> None:
    write_settings(tmp_path, Settings(1, RELAY, Link()))
    (tmp_path / FILE).write_text('{"hosts": 1')

    ended = invoke("status", f"--state={tmp_path}")

    assert ended.exit_code == 1
    assert f"{FILE} is damaged" in " ".join(ended.output.split())
