"""Start, failure, restart and stop of stacks with fake servers."""

import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag import processes
from keylag import status as keylag_status
from keylag.commands import down, status, up
from keylag.datadir_cache import DatadirCache
from keylag.load_target import from_stack
from keylag.ports import PortTakenError
from keylag.sample_cloud import users_file
from keylag.services.base import (
    Service,
    ServiceContext,
    StackOptions,
    first_bytes,
    no_variables,
)
from keylag.stack import InitialData, Stack, StackError
from keylag.stack_info import StackDownError, StackInfo
from keylag.stack_record import StackRecord, load_secrets
from keylag.status import stack_status
from keylag.tools import Tools

SERVER = (
    "import socket, sys\n"
    "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "while True: s.accept()[0].send(b'hello')\n"
)
TOOLS = Tools(*[Path(sys.executable)] * 7)


def service(name: str, code: str = SERVER, **more: tuple[str, ...]) -> Service:
    """Return a service that runs Python code, by default a server that greets."""

    def prepare(site: ServiceContext) -> None:
        with (site.data / "order").open("a") as order:
            order.write(f"{name}:{site.options.cache} ")

    def command(site: ServiceContext) -> list[str | Path]:
        return [sys.executable, "-c", code, str(site.ports[name])]

    return Service(
        name=name,
        ports=(name,),
        prepare=prepare,
        command=command,
        environment=no_variables,
        healthy=lambda ports: first_bytes(ports[name]) == b"hello",
        advice="Look here.",
        **more,
    )


BASE = service("base")
TOP = service("top", depends_on=("base",), restart_with=("base",))
BROKEN = service("broken", "print('the reason'); raise SystemExit(9)")

MakeStack = Callable[..., Stack]


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[MakeStack]:
    """A function that makes stacks in tmp_path; they stop after the test."""

    def make(name: str, *services: Service, cache: str = "null") -> Stack:
        return Stack(
            tmp_path / name,
            TOOLS,
            StackOptions(cache=cache),
            services=services,
            datadir_cache=DatadirCache(tmp_path / "store"),
        )

    yield make
    processes.stop_processes(processes.find_processes(below=tmp_path))


def order(stack: Stack) -> str:
    """Return the prepared services in order."""
    return (stack.data / "order").read_text().strip()


def test_context_manager_starts_and_stops_the_stack(make_stack: MakeStack) -> None:
    with make_stack("s", BASE, TOP) as stack:
        inside = [(entry.service, entry.healthy) for entry in stack.status()]
        assert stack.is_up()
        assert stack.url("top") == f"http://127.0.0.1:{stack.port('top')}"

    assert inside == [("base", True), ("top", True)]
    assert processes.find_processes(stack=stack.folder) == []
    assert (stack.data / "secrets.json").exists()
    assert stack.down() == []


def test_second_up_keeps_the_processes(make_stack: MakeStack) -> None:
    stack = make_stack("s", BASE, TOP)
    stack.up()
    first = [entry.pid for entry in stack.status()]

    make_stack("s", BASE, TOP).up()

    assert first == [entry.pid for entry in stack.status()]


def test_up_restarts_an_unhealthy_stack(make_stack: MakeStack) -> None:
    stack = make_stack("s", BASE, TOP)
    stack.up()
    victim = processes.find_processes(stack=stack.folder)[0].process
    victim.kill()
    victim.wait()
    assert not stack.is_up()

    stack.up()

    assert stack.is_up()


def test_failed_service_stops_the_stack_and_is_explained(make_stack: MakeStack) -> None:
    stack = make_stack("s", BASE, BROKEN)

    with pytest.raises(StackError) as caught:
        stack.up()

    text = str(caught.value)
    assert "broken did not start: ended with exit code 9" in text
    assert "the reason" in text
    assert text.endswith("Look here.")
    assert processes.find_processes(stack=stack.folder) == []


def test_restart_includes_dependent_services(make_stack: MakeStack) -> None:
    with make_stack("s", BASE, TOP, service("other")) as stack:
        before = {entry.service: entry.pid for entry in stack.status()}
        stack.restart("top", options=replace(stack.options, cache="memcache_pool"))
        after = {entry.service: entry.pid for entry in stack.status()}

        assert stack.is_up()

    assert before["other"] == after["other"]
    assert before["top"] != after["top"]
    assert before["base"] != after["base"]
    assert order(stack).endswith("base:memcache_pool top:memcache_pool")


def test_initial_data_is_filled_once_and_copied(make_stack: MakeStack) -> None:
    filled: list[Path] = []

    def fill(stack: Stack) -> None:
        assert stack.is_up()
        filled.append(stack.folder)
        (stack.data / "content").write_text("users")

    first, second = make_stack("a", BASE), make_stack("b", BASE)
    first.up(InitialData("users", fill))
    second.up(InitialData("users", fill))

    assert filled == [first.folder]
    assert (second.data / "content").read_text() == "users"
    assert load_secrets(second.data) == load_secrets(first.data)


def test_different_key_replaces_the_data(make_stack: MakeStack) -> None:
    stack = make_stack("a", BASE)
    stack.up(InitialData("one", lambda stack: _write(stack, "one")))
    stack.up(InitialData("two", lambda stack: _write(stack, "two")))

    assert stack.is_up()
    assert (stack.data / "content").read_text() == "two"

    stack.up()
    assert (stack.data / "content").read_text() == "two"


def _write(stack: Stack, text: str) -> None:
    (stack.data / "content").write_text(text)


def test_failed_fill_is_not_cached(make_stack: MakeStack) -> None:
    stack = make_stack("a", BASE)

    def fail(_: Stack) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack.up(InitialData("users", fail))
    stack.up(InitialData("users", lambda stack: _write(stack, "users")))

    assert (stack.data / "content").read_text() == "users"


def test_stacks_are_independent(make_stack: MakeStack) -> None:
    with make_stack("a", BASE) as one, make_stack("b", BASE) as two:
        assert one.port("base") != two.port("base")
        one.down()
        assert two.is_up()


def test_down_stops_unknown_services(make_stack: MakeStack) -> None:
    stack = make_stack("s", service("unknown"))
    stack.up()

    first = CliRunner().invoke(down.command, ["--state", str(stack.folder)])
    second = CliRunner().invoke(down.command, ["--state", str(stack.folder)])

    assert first.output == f"Stopped unknown ({stack.folder}).\n"
    assert (second.output, second.exit_code) == ("No stack is running.\n", 0)


def test_status_without_a_stack_exits_with_1(tmp_path: Path) -> None:
    arguments = ["--state", str(tmp_path)]
    table = CliRunner().invoke(status.command, arguments)
    as_json = CliRunner().invoke(status.command, [*arguments, "--output", "json"])

    assert (table.exit_code, as_json.exit_code) == (1, 1)
    assert "not running" in table.output
    assert '"healthy": false' in as_json.output


def test_down_stops_nested_stacks_only_with_all(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    near, far = make_stack("near", BASE), make_stack("tests/far", BASE)
    near.up()
    far.up()
    env = {"KEYLAG_STATE": str(tmp_path)}

    plain = CliRunner().invoke(down.command, [], env=env)
    remaining = far.is_up()
    everything = CliRunner().invoke(down.command, ["--all"], env=env)

    assert plain.output == f"Stopped base ({near.folder}).\n"
    assert remaining
    assert everything.output == f"Stopped base ({far.folder}).\n"


def test_status_lists_the_services_of_the_last_start(
    make_stack: MakeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_stack("s", BASE).folder
    started = StackRecord(services=("memcached", "redis"))
    folder.mkdir()
    started.save(folder)
    (tmp_path / "grafana").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert [one.service for one in stack_status(folder)] == ["memcached", "redis"]


def test_up_restarts_with_new_services(make_stack: MakeStack) -> None:
    make_stack("s", BASE).up()

    wider = make_stack("s", BASE, TOP)
    wider.up()

    assert [one.service for one in wider.status() if one.healthy] == ["base", "top"]


def test_require_keystone_raises_without_keystone(make_stack: MakeStack) -> None:
    with make_stack("s", BASE) as stack, pytest.raises(StackDownError) as caught:
        stack.require_keystone("give --url")

    assert "Start one with `keylag up`, or give --url." in str(caught.value)


def test_require_keystone_warns_of_unhealthy_services(
    make_stack: MakeStack, caplog: pytest.LogCaptureFixture
) -> None:
    """Users may want to measure a stack with a stopped server."""
    with make_stack("s", BASE, service("keystone")) as stack:
        found = {
            mark.service: mark for mark in processes.find_processes(stack=stack.folder)
        }
        stopped = found["base"].process
        stopped.suspend()
        try:
            stack.require_keystone("give --url")
        finally:
            stopped.resume()

    (record,) = caplog.records
    assert f"base (pid {stopped.pid}) does not answer" in record.getMessage()


def test_running_stack_needs_no_programs_on_the_path(
    make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_stack("s", service("keystone")) as stack:
        users = "username,password,user_domain,project,project_domain\na,b,c,d,e\n"
        users_file(stack).write_text(users)
        monkeypatch.setenv("PATH", "")
        known = StackInfo(stack.folder, (service("keystone"),))
        target = from_stack(known)

    assert target.properties["port"] == str(known.port("keystone"))


def test_second_up_prints_addresses_and_needs_no_programs(
    make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    keystone = service("keystone")
    monkeypatch.setattr(keylag_status, "SERVICES", (keystone,))
    with make_stack("s", keystone) as stack:
        found = processes.find_processes(stack=stack.folder)
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr("keylag.tools.programs.SYSTEM_FOLDERS", ())
        again = CliRunner().invoke(up.command, ["--state", str(stack.folder)])
        other = CliRunner().invoke(
            up.command, ["--state", str(stack.folder), "--cache", "redis"]
        )
        after = processes.find_processes(stack=stack.folder)

    assert again.output.startswith("The stack is already running.\nKeystone ")
    assert f"{stack.url('keystone')}/v3\n" in again.output
    assert again.exit_code == 0
    assert other.exit_code != 0
    assert "Restarting Keystone." in other.output
    assert after == found


def test_port_in_use_prevents_start_until_new_ports(make_stack: MakeStack) -> None:
    with make_stack("s", BASE) as stack:
        port = stack.port("base")

    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PortTakenError):
            stack.up()
        remaining = processes.find_processes(stack=stack.folder)
        stack.up(new_ports=True)
        moved = stack.port("base")

    assert remaining == []
    assert moved != port
    assert make_stack("s", BASE).port("base") == moved
