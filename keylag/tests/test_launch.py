"""A stack of stand-in servers: order, failure, restart and what is kept."""

import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag import processes
from keylag.cloud import users_file
from keylag.commands import down, status
from keylag.ports import PortTakenError
from keylag.prepared import Prepared, Store
from keylag.record import Record, load_secrets
from keylag.services.base import Service, Site, StackOptions, nothing, talks
from keylag.stack import Stack, StackError
from keylag.stack_folder import StackDownError, StackFolder
from keylag.status import stack_status
from keylag.target import of_stack
from keylag.tools import Tools

SERVER = (
    "import socket, sys\n"
    "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "while True: s.accept()[0].send(b'hello')\n"
)
TOOLS = Tools(*[Path(sys.executable)] * 7)


def service(name: str, code: str = SERVER, **more: tuple[str, ...]) -> Service:
    """Return a service that runs a few lines of Python and greets who connects."""

    def prepare(site: Site) -> None:
        with (site.data / "order").open("a") as order:
            order.write(f"{name}:{site.options.cache} ")

    def command(site: Site) -> list[str | Path]:
        return [sys.executable, "-c", code, str(site.ports[name])]

    return Service(
        name=name,
        ports=(name,),
        prepare=prepare,
        command=command,
        environment=nothing,
        healthy=lambda ports: talks(ports[name]) == b"hello",
        advice="Look here.",
        **more,
    )


BASE = service("base")
TOP = service("top", needs=("base",), renews=("base",))
BROKEN = service("broken", "print('the reason'); raise SystemExit(9)")

MakeStack = Callable[..., Stack]


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[MakeStack]:
    """Make stacks in tmp_path; all are stopped after the test."""

    def make(name: str, *services: Service, cache: str = "null") -> Stack:
        return Stack(
            tmp_path / name,
            TOOLS,
            StackOptions(cache=cache),
            services=services,
            store=Store(tmp_path / "store"),
        )

    yield make
    processes.stop(processes.find(below=tmp_path))


def order(stack: Stack) -> str:
    """Return which services were prepared, in order."""
    return (stack.data / "order").read_text().strip()


def test_up_and_down(make_stack: MakeStack) -> None:
    """Inside the block all answers; afterwards nothing runs and data stays."""
    with make_stack("s", BASE, TOP) as stack:
        inside = [(entry.service, entry.healthy) for entry in stack.status()]
        assert stack.is_up()
        assert stack.url("top") == f"http://127.0.0.1:{stack.port('top')}"

    assert inside == [("base", True), ("top", True)]
    assert processes.find(stack=stack.folder) == []
    assert (stack.data / "secrets.json").exists()
    assert stack.down() == []


def test_up_twice_changes_nothing(make_stack: MakeStack) -> None:
    """The second `up` leaves the processes alone."""
    stack = make_stack("s", BASE, TOP)
    stack.up()
    first = [entry.pid for entry in stack.status()]

    make_stack("s", BASE, TOP).up()

    assert first == [entry.pid for entry in stack.status()]


def test_up_replaces_what_is_half_dead(make_stack: MakeStack) -> None:
    """After one server was killed `up` makes the stack whole again."""
    stack = make_stack("s", BASE, TOP)
    stack.up()
    victim = processes.find(stack=stack.folder)[0].process
    victim.kill()
    victim.wait()
    assert not stack.is_up()

    stack.up()

    assert stack.is_up()


def test_a_dead_server_is_explained(make_stack: MakeStack) -> None:
    """The error has name, code, the end of the log and advice; nothing stays up."""
    stack = make_stack("s", BASE, BROKEN)

    with pytest.raises(StackError) as caught:
        stack.up()

    text = str(caught.value)
    assert "broken: died with code 9" in text
    assert "the reason" in text
    assert text.endswith("Look here.")
    assert processes.find(stack=stack.folder) == []


def test_restart_renews_what_belongs_to_it(make_stack: MakeStack) -> None:
    """A restart takes new options and brings what has to be fresh along."""
    with make_stack("s", BASE, TOP, service("other")) as stack:
        before = {entry.service: entry.pid for entry in stack.status()}
        stack.restart("top", options=replace(stack.options, cache="memcache_pool"))
        after = {entry.service: entry.pid for entry in stack.status()}

        assert stack.is_up()

    assert before["other"] == after["other"]
    assert before["top"] != after["top"]
    assert before["base"] != after["base"]
    assert order(stack).endswith("base:memcache_pool top:memcache_pool")


def test_filling_is_done_once(make_stack: MakeStack) -> None:
    """The second stack gets a copy of what the first one was filled with."""
    filled: list[Path] = []

    def fill(stack: Stack) -> None:
        assert stack.is_up()
        filled.append(stack.folder)
        (stack.data / "content").write_text("users")

    first, second = make_stack("a", BASE), make_stack("b", BASE)
    first.up(Prepared("users", fill))
    second.up(Prepared("users", fill))

    assert filled == [first.folder]
    assert (second.data / "content").read_text() == "users"
    assert load_secrets(second.data) == load_secrets(first.data)


def test_another_key_is_another_filling(make_stack: MakeStack) -> None:
    """A stack that is up with other data starts again with the data asked for."""
    stack = make_stack("a", BASE)
    stack.up(Prepared("one", lambda stack: _write(stack, "one")))
    stack.up(Prepared("two", lambda stack: _write(stack, "two")))

    assert stack.is_up()
    assert (stack.data / "content").read_text() == "two"

    stack.up()
    assert (stack.data / "content").read_text() == "two"


def _write(stack: Stack, text: str) -> None:
    (stack.data / "content").write_text(text)


def test_a_failed_filling_is_not_kept(make_stack: MakeStack) -> None:
    """Half filled data is neither used nor copied, and nothing stays up."""
    stack = make_stack("a", BASE)

    def fail(_: Stack) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stack.up(Prepared("users", fail))
    stack.up(Prepared("users", lambda stack: _write(stack, "users")))

    assert (stack.data / "content").read_text() == "users"


def test_two_stacks_side_by_side(make_stack: MakeStack) -> None:
    """Each has its own ports, and stopping one leaves the other."""
    with make_stack("a", BASE) as one, make_stack("b", BASE) as two:
        assert one.port("base") != two.port("base")
        one.down()
        assert two.is_up()


def test_down_needs_only_the_mark(make_stack: MakeStack) -> None:
    """`keylag down` also stops what an unknown version of us had started."""
    stack = make_stack("s", service("unheard-of"))
    stack.up()

    first = CliRunner().invoke(down.command, ["--state", str(stack.folder)])
    second = CliRunner().invoke(down.command, ["--state", str(stack.folder)])

    assert first.output == f"Stopped unheard-of ({stack.folder}).\n"
    assert (second.output, second.exit_code) == ("Nothing is running.\n", 0)


def test_status_of_nothing(tmp_path: Path) -> None:
    """`keylag status` ends with 1 if not all is well, in both of its forms."""
    arguments = ["--state", str(tmp_path)]
    table = CliRunner().invoke(status.command, arguments)
    as_json = CliRunner().invoke(status.command, [*arguments, "--output", "json"])

    assert (table.exit_code, as_json.exit_code) == (1, 1)
    assert "not running" in table.output
    assert '"healthy": false' in as_json.output


def test_down_leaves_deeper_stacks(make_stack: MakeStack, tmp_path: Path) -> None:
    """Only with --all does it stop stacks that are deeper in the state folder."""
    near, far = make_stack("near", BASE), make_stack("tests/far", BASE)
    near.up()
    far.up()
    env = {"KEYLAG_STATE": str(tmp_path)}

    plain = CliRunner().invoke(down.command, [], env=env)
    left = far.is_up()
    everything = CliRunner().invoke(down.command, ["--all"], env=env)

    assert plain.output == f"Stopped base ({near.folder}).\n"
    assert left
    assert everything.output == f"Stopped base ({far.folder}).\n"


def test_a_stack_is_what_was_started(
    make_stack: MakeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that appears on the PATH does not make a running stack incomplete."""
    folder = make_stack("s", BASE).folder
    started = Record(services=("memcached", "redis"))
    folder.mkdir()
    started.save(folder)
    (tmp_path / "grafana").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert [one.service for one in stack_status(folder)] == ["memcached", "redis"]


def test_up_adds_a_service_that_was_not_started(make_stack: MakeStack) -> None:
    """Other services than last time are another stack, though all of it answers."""
    make_stack("s", BASE).up()

    wider = make_stack("s", BASE, TOP)
    wider.up()

    assert [one.service for one in wider.status() if one.healthy] == ["base", "top"]


def test_a_stack_without_keystone_is_down(make_stack: MakeStack) -> None:
    """The error says how to get one."""
    with make_stack("s", BASE) as stack, pytest.raises(StackDownError) as caught:
        stack.require_keystone("give --url")

    assert "Start one with `keylag up`, or give --url." in str(caught.value)


def test_a_sick_server_is_named_and_no_hindrance(
    make_stack: MakeStack, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped server is what somebody may want to measure."""
    with make_stack("s", BASE, service("keystone")) as stack:
        found = {mark.service: mark for mark in processes.find(stack=stack.folder)}
        stopped = found["base"].process
        stopped.suspend()
        try:
            stack.require_keystone("give --url")
        finally:
            stopped.resume()

    (record,) = caplog.records
    assert f"base (pid {stopped.pid}) does not answer" in record.getMessage()


def test_the_programs_are_needed_to_start_a_stack_alone(
    make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load goes to a running stack, whatever has left the PATH since."""
    with make_stack("s", service("keystone")) as stack:
        users = "username,password,user_domain,project,project_domain\na,b,c,d,e\n"
        users_file(stack).write_text(users)
        monkeypatch.setenv("PATH", "")
        known = StackFolder(stack.folder, (service("keystone"),))
        where = of_stack(known)

    assert where.properties["port"] == str(known.port("keystone"))


def test_a_taken_port_stops_the_stack(make_stack: MakeStack) -> None:
    """It stays down until somebody moves it."""
    with make_stack("s", BASE) as stack:
        port = stack.port("base")

    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PortTakenError):
            stack.up()
        left = processes.find(stack=stack.folder)
        stack.up(new_ports=True)
        moved = stack.port("base")

    assert left == []
    assert moved != port
    assert make_stack("s", BASE).port("base") == moved
