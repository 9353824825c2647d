"""Levers: what they set in fake trees of the kernel, and how they are taken back."""

import json
import shutil
from pathlib import Path

import pytest

from keylag import control_groups
from keylag.lab import iproute
from keylag.lab.iproute import LabError
from keylag.lab.neighbours import levers, switches
from keylag.lab.neighbours.levers import LEVERS, KernelFile
from keylag.lab.neighbours.switches import FILE, Switches, read_chosen

PID = 4711
FILES = {
    "vda/queue/scheduler": "none [mq-deadline] kyber bfq",
    "vda/queue/iosched/writes_starved": "2",
    "vda/bdi/strict_limit": "0",
    "vda/bdi/max_ratio": "100",
    "vda/dev": "254:0",
    "expiry": "3000",
    "cgroup/cgroup.subtree_control": "cpuset",
    "own": "5:memory:/user\n4:cpu,cpuacct:/user\n3:blkio:/user\n0::/user",
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk, control groups of version 2, and memory, as files below a folder."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    monkeypatch.setattr(control_groups, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(control_groups, "OWN_GROUPS", tmp_path / "own")
    # The kernel deletes a group with its files.
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    expiry = KernelFile(str(tmp_path / "expiry"), "12000")
    lever = LEVERS["write-back-expiry"]._replace(changes=(expiry,))
    empty = levers.EMPTY_PAGE_CACHE._replace(path=str(tmp_path / "drop_caches"))
    memory = LEVERS["memory-limit"]._replace(changes=(levers.MEMORY_LIMIT, empty))
    rows = {**LEVERS, "write-back-expiry": lever, "memory-limit": memory}
    monkeypatch.setattr(switches, "LEVERS", rows)
    return tmp_path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that were run, in place of running them."""
    made: list[tuple[str, ...]] = []

    def run(*words: str, **_: str) -> str:
        made.append(words)
        return ""

    monkeypatch.setattr(iproute, "run", run)
    return made


def load(machine: Path, *pids: int) -> Switches:
    """Return the levers of a laboratory, read anew as each command does."""
    return Switches.load(machine, machine / "vda", lambda: pids)


def contents(machine: Path) -> dict[str, str]:
    """Return what all files have now."""
    return {name: (machine / name).read_text().strip() for name in FILES}


def group(tree: Path) -> Path:
    """Return the control group of the neighbours."""
    (found,) = tree.glob("keylag-neighbours-*")
    return found


def test_a_file_gets_back_what_it_had(machine: Path) -> None:
    load(machine).switch_on("write-back-expiry")
    assert (machine / "expiry").read_text() == "12000"

    load(machine).switch_off("write-back-expiry")
    assert (machine / "expiry").read_text() == "3000"
    assert not (machine / FILE).exists()


def test_what_a_file_had_is_recorded_before_it_is_changed(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, recorded = Path.write_text, []

    def observe(path: Path, text: str, **options: str) -> int:
        if path.name == "expiry":
            recorded.append(json.loads((machine / FILE).read_text()))
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", observe)
    load(machine).switch_on("write-back-expiry")

    assert recorded == [{"write-back-expiry": {str(machine / "expiry"): "3000"}}]


def test_switching_on_twice_keeps_the_first_value(machine: Path) -> None:
    for _ in range(2):
        load(machine).switch_on("writes-starved")

    assert contents(machine)["vda/queue/iosched/writes_starved"] == "16"
    load(machine).switch_to([])
    found = contents(machine)
    assert found["vda/queue/iosched/writes_starved"] == "2"
    assert found["vda/queue/scheduler"] == "mq-deadline"


def test_a_scheduler_that_lists_all_is_the_chosen_one(machine: Path) -> None:
    assert read_chosen(machine / "vda/queue/scheduler") == "mq-deadline"
    assert read_chosen(machine / "expiry") == "3000"


def test_settings_that_ended_with_the_scheduler_are_not_restored(machine: Path) -> None:
    load(machine).switch_on("writes-starved")
    shutil.rmtree(machine / "vda/queue/iosched")

    load(machine).switch_off("writes-starved")

    assert not (machine / "vda/queue/iosched").exists()
    assert not (machine / FILE).exists()


def test_a_scheduler_alone_leaves_its_settings(machine: Path) -> None:
    (machine / "vda/queue/scheduler").write_text("[none] mq-deadline bfq\n")
    load(machine).switch_on("mq-deadline")

    found = contents(machine)
    assert found["vda/queue/scheduler"] == "mq-deadline"
    assert found["vda/queue/iosched/writes_starved"] == "2"

    load(machine).switch_off("mq-deadline")
    assert contents(machine)["vda/queue/scheduler"] == "none"


def test_two_levers_do_not_set_the_same_file(machine: Path) -> None:
    load(machine).switch_to(["writes-starved"])

    with pytest.raises(LabError, match=r"both set .*scheduler. Choose one of them"):
        load(machine).switch_to(["bfq", "io-weight"])
    assert list(load(machine).record) == ["writes-starved"]

    load(machine).switch_to(["io-weight"])
    assert contents(machine)["vda/queue/scheduler"] == "bfq"


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("cpu-weight", "cpu.weight", "10"),
        ("cpu-limit", "cpu.max", "50000 100000"),
        ("io-weight", "io.bfq.weight", "10"),
        ("write-limit", "io.max", "254:0 wbps=4194304"),
        ("memory-limit", "memory.high", "268435456"),
    ],
)
def test_the_databases_join_a_group_of_version_2(
    machine: Path, name: str, file: str, text: str
) -> None:
    load(machine, PID).switch_on(name)

    made = group(machine / "cgroup")
    assert (made / file).read_text() == text
    assert (made / "cgroup.procs").read_text() == str(PID)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("cpu-weight", "cpu/{}/cpu.shares", "102"),
        ("cpu-limit", "cpu/{}/cpu.cfs_quota_us", "50000"),
        ("io-weight", "blkio/{}/blkio.bfq.weight", "10"),
        ("write-limit", "blkio/{}/blkio.throttle.write_bps_device", "254:0 4194304"),
        ("memory-limit", "memory/{}/memory.limit_in_bytes", "268435456"),
    ],
)
def test_the_databases_join_a_group_of_version_1(
    machine: Path, name: str, file: str, text: str
) -> None:
    tree = machine / "cgroup" / Path(file).parts[0]
    (tree / "user").mkdir(parents=True)

    load(machine, PID).switch_on(name)
    made = group(tree)
    assert (machine / "cgroup" / file.format(made.name)).read_text() == text

    load(machine, PID).switch_off(name)
    assert (tree / "user/cgroup.procs").read_text() == str(PID)
    assert not made.exists()


def test_memory_is_emptied_once_the_databases_are_in_their_group(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = Path.write_text, []

    def observe(path: Path, text: str, **options: str) -> int:
        written.append(path.name)
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", observe)
    load(machine, PID).switch_on("memory-limit")
    assert written[-2:] == ["cgroup.procs", "drop_caches"]

    written.clear()
    load(machine, PID).switch_off("memory-limit")
    assert "drop_caches" not in written
    assert not (machine / FILE).exists()


def test_a_group_remains_while_another_lever_needs_it(machine: Path) -> None:
    for name in ("cpu-weight", "cpu-limit"):
        load(machine, PID).switch_on(name)

    load(machine, PID).switch_off("cpu-limit")
    made = group(machine / "cgroup")
    assert (made / "cpu.max").read_text() == "max 100000"
    assert (made / "cpu.weight").read_text() == "10"

    load(machine, PID).switch_off("cpu-weight")
    assert not made.exists()


def test_requests_of_a_class_are_those_of_whole_databases(
    machine: Path, commands: list[tuple[str, ...]]
) -> None:
    load(machine, PID).switch_on("ionice")
    load(machine, PID).switch_off("ionice")

    assert commands == [
        ("ionice", "-c", "3", "-P", "4711"),
        ("ionice", "-c", "0", "-P", "4711"),
    ]


def fail(*_: str, **__: str) -> str:
    """Fail as ionice does."""
    message = "`ionice` failed: No such process"
    raise LabError(message)


def test_a_database_that_ends_meanwhile_needs_no_class(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = [[PID], []]
    monkeypatch.setattr(iproute, "run", fail)

    Switches.load(machine, machine / "vda", lambda: running.pop(0)).switch_on("ionice")

    assert list(load(machine).record) == ["ionice"]


def test_a_lever_that_stays_on_does_not_keep_others_on(
    machine: Path,
    commands: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(machine, PID).switch_to(["write-back-expiry", "ionice"])
    assert commands
    monkeypatch.setattr(iproute, "run", fail)

    with pytest.raises(LabError, match=r"ionice could not be taken back"):
        load(machine, PID).switch_to([])

    assert (machine / "expiry").read_text() == "3000"
    assert list(load(machine).record) == ["ionice"]


def test_levers_hold_for_databases_that_start_later(machine: Path) -> None:
    load(machine).switch_on("cpu-weight")
    made = group(machine / "cgroup")
    assert not (made / "cgroup.procs").exists()

    load(machine, PID).renew()

    assert (made / "cgroup.procs").read_text() == str(PID)


def test_a_lever_that_fails_leaves_nothing(machine: Path) -> None:
    (machine / "vda/bdi/max_ratio").unlink()

    with pytest.raises(LabError, match="dirty-limit could not be switched on"):
        load(machine).switch_on("dirty-limit")

    assert contents_of(machine, "vda/bdi/strict_limit") == "0"
    assert not (machine / FILE).exists()


def contents_of(machine: Path, name: str) -> str:
    """Return what a file has now."""
    return (machine / name).read_text().strip()


def test_what_could_not_be_restored_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(machine).switch_on("write-back-expiry")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(LabError, match=r"Before, there was .*expiry: 3000"):
        load(machine).switch_off("write-back-expiry")
    assert (machine / FILE).exists()


def test_a_damaged_record_is_an_error(machine: Path) -> None:
    (machine / FILE).write_text("{")

    with pytest.raises(LabError, match="is damaged"):
        load(machine)


def test_every_lever_says_what_it_sets() -> None:
    for lever in LEVERS.values():
        assert lever.summary.endswith(".")
        assert lever.changes
    assert levers.DEADLINE.path == levers.BFQ.path
