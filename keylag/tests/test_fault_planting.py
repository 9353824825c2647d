"""Planting faults in a stack of fake servers, and taking them back."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from rich.console import Console

from keylag import processes
from keylag.commands import down, fault
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.impact import Impact
from keylag.faults.journal import FILE, Journal
from keylag.faults.model import FIXED, FaultError, FaultUsageError
from keylag.faults.planting import find_fault, plant, planted, take_back
from keylag.faults.probe import Latency
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.services.base import StackOptions
from keylag.stack import Stack
from keylag.stack_record import StackRecord

SECONDS = 10


def new_site(fake_stack: Stack) -> Site:
    """Return a site as another command would have it."""
    return Site(fake_stack.folder, Console(quiet=True), fake_stack)


def statuses(fault_site: Site, name: str) -> list[str]:
    """Return the states of the processes of a service."""
    return [one.process.status() for one in fault_site.processes(name)]


def helper_names(site: Site) -> list[str]:
    """Return the names of the helpers in the journal."""
    return [one.name for one in site.journal.changes() if isinstance(one, Helper)]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_until_suspended(fault_site: Site, name: str) -> None:
    """Wait until the one process of a service has received its SIGSTOP."""
    wait_until(lambda: statuses(fault_site, name) == [psutil.STATUS_STOPPED])


def test_keystone_forgets_a_suspended_server_when_the_fault_is_taken_back(
    fake_stack: Stack, fault_site: Site
) -> None:
    (before,) = fault_site.processes("keystone")

    with planted(fake_stack, FAULTS["C2"]):
        wait_until_suspended(fault_site, "memcached")

    (after,) = fault_site.processes("keystone")
    assert before != after
    assert fake_stack.is_up()
    assert not (fake_stack.folder / FILE).exists()


def test_options_are_those_of_all_planted_faults(
    fault_site: Site, fake_stack: Stack
) -> None:
    before = fake_stack.options
    plant(fault_site, FAULTS["C1"])
    plant(fault_site, FAULTS["W1"])
    during = fault_site.options

    first = take_back(new_site(fake_stack), "C1")
    between = fault_site.options
    rest = take_back(new_site(fake_stack))

    assert (during.cache, during.processes) == ("null", 1)
    assert (between.cache, between.processes) == ("memcache_pool", 1)
    assert (first, rest) == (["C1"], ["W1"])
    assert before == fault_site.options


def test_a_restart_leaves_a_suspended_server_suspended(
    fault_site: Site, fake_stack: Stack
) -> None:
    plant(fault_site, FAULTS["C2"])
    plant(fault_site, FAULTS["W1"])

    wait_until_suspended(fault_site, "memcached")
    assert take_back(fault_site) == ["W1", "C2"]
    assert fake_stack.is_up()


@pytest.mark.parametrize("other", ["C1", "C2:stopped", "C2"])
def test_faults_that_change_the_same_part_conflict(
    fault_site: Site, other: str
) -> None:
    plant(fault_site, FAULTS["C2"])

    with pytest.raises(FaultUsageError) as caught:
        plant(fault_site, FAULTS[other])

    assert "`keylag fault stop" in str(caught.value)
    assert [one.key for one in Journal(fault_site.folder).planted] == ["C2"]


def test_a_fault_without_effect_on_the_stack_is_refused(
    fault_site: Site, fake_stack: Stack
) -> None:
    replace(fault_site.record, options=replace(fake_stack.options, cache="null")).save(
        fault_site.folder
    )

    with pytest.raises(FaultUsageError, match="keylag up --cache memcache_pool"):
        plant(fault_site, FAULTS["C2"])


def test_a_fault_is_refused_without_those_that_it_needs(
    fault_site: Site, fake_stack: Stack
) -> None:
    replace(fault_site.record, options=replace(fake_stack.options, threads=16)).save(
        fault_site.folder
    )

    with pytest.raises(FaultUsageError, match="keylag fault start D1 --strength 5"):
        plant(fault_site, FAULTS["D5"])


def test_faults_that_another_one_needs_are_planted_with_it(fake_stack: Stack) -> None:
    needing = replace(FAULTS["W1"], beside={"C1": 1})

    with planted(fake_stack, needing) as site:
        during = [one.key for one in Journal(site.folder).planted]

    assert during == ["C1", "W1"]
    assert not (fake_stack.folder / FILE).exists()


@pytest.mark.parametrize("key", FAULTS)
def test_a_stack_with_what_a_fault_needs_has_it(key: str) -> None:
    options = StackOptions()
    for need in FAULTS[key].needs:
        options = need.added_to(options)

    assert all(need.met(options) for need in FAULTS[key].needs)


def test_the_journal_alone_takes_back_what_a_crash_left(
    fault_site: Site, fake_stack: Stack
) -> None:
    """One change was made, another was only in the journal."""
    helper = Helper("busy-loops", {"loops": 1})
    before = fault_site.options
    fault_site.journal.base = before
    begun = fault_site.journal.begin(FAULTS["W2"], 1.0, 0.0)
    fault_site.journal.add(begun, helper)
    helper.apply(fault_site)
    fault_site.journal.add(begun, Options(processes=1))
    replace(fault_site.record, options=replace(before, processes=1)).save(
        fault_site.folder
    )
    running = fault_site.processes(helper.name)

    first, second = take_back(new_site(fake_stack)), take_back(new_site(fake_stack))

    assert len(running) == 2
    assert fault_site.processes(helper.name) == []
    assert (first, second) == (["W2"], [])
    assert before == fault_site.options
    assert fake_stack.is_up()


def test_an_interrupted_start_is_taken_back(
    fault_site: Site, fake_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart = fake_stack.restart

    def interrupted(*_: str, **__: object) -> None:
        monkeypatch.setattr(fake_stack, "restart", restart)
        fake_stack.down()
        raise KeyboardInterrupt

    monkeypatch.setattr(fake_stack, "restart", interrupted)

    with pytest.raises(KeyboardInterrupt):
        plant(fault_site, FAULTS["W1"])

    assert fake_stack.is_up()
    assert fake_stack.options.processes == StackOptions().processes
    assert not (fake_stack.folder / FILE).exists()


def test_a_helper_ends_when_the_journal_is_gone(fault_site: Site) -> None:
    plant(fault_site, FAULTS["W2"], 0.5)
    (name,) = helper_names(fault_site)
    running = fault_site.processes(name)

    (fault_site.folder / FILE).unlink()

    assert len(running) == 2
    wait_until(lambda: not fault_site.processes(name))


def test_down_takes_faults_back_without_a_restart(fault_site: Site) -> None:
    before = fault_site.options
    plant(fault_site, FAULTS["W1"])
    plant(fault_site, FAULTS["C2"])

    ended = CliRunner().invoke(down.command, ["--state", str(fault_site.folder)])

    assert ended.output == f"Stopped keystone, memcached ({fault_site.folder}).\n"
    assert before == fault_site.options
    assert not (fault_site.folder / FILE).exists()
    assert processes.find_processes(stack=fault_site.folder) == []


def test_stop_leaves_a_stopped_stack_stopped(
    fault_site: Site, fake_stack: Stack
) -> None:
    before = fault_site.options
    plant(fault_site, FAULTS["W1"])
    fake_stack.down()

    ended = CliRunner().invoke(
        fault.command, ["stop", "--state", str(fault_site.folder)]
    )

    assert ended.output == "Took back W1 workers.\n"
    assert before == fault_site.options
    assert processes.find_processes(stack=fault_site.folder) == []


def test_status_names_faults_and_ended_processes(fault_site: Site) -> None:
    arguments = ["status", "--state", str(fault_site.folder)]
    nothing = CliRunner().invoke(fault.command, arguments)
    plant(fault_site, FAULTS["W2"], 0.5)
    (name,) = helper_names(fault_site)
    running = CliRunner().invoke(fault.command, [*arguments, "--output", "json"])
    processes.stop_processes(fault_site.processes(name))
    ended = CliRunner().invoke(fault.command, arguments)

    assert nothing.output == "No fault is planted.\n"
    (row,) = json.loads(running.output)
    assert (row["id"], row["strength"], row["complete"]) == ("W2", 0.5, True)
    assert row["processes"]["busy-loops"] > 0
    assert "W2 cpu-starved, 0.5 busy loops per processor" in ended.output
    assert "its busy-loops has ended; `keylag fault stop` takes it back" in ended.output


def test_start_needs_a_stack(tmp_path: Path) -> None:
    ended = CliRunner().invoke(fault.command, ["start", "C2", "--state", str(tmp_path)])

    assert ended.exit_code == 1
    assert "No stack runs in" in str(ended.exception)


@pytest.mark.parametrize(
    ("text", "key"),
    [("c4", "C4"), ("D2", "D2:cpu"), ("C2:STOPPED", "C2:stopped"), ("cache-far", "C4")],
)
def test_faults_are_found_by_id_and_name(text: str, key: str) -> None:
    assert find_fault(text) is FAULTS[key]


def test_an_unknown_fault_is_answered_with_the_most_similar() -> None:
    with pytest.raises(FaultUsageError, match="Did you mean `cache-far`"):
        find_fault("cache-fra")


def test_a_strength_out_of_range_is_refused() -> None:
    with pytest.raises(FaultUsageError, match=r"out of range: 1 to 99 %"):
        FAULTS["D2:cpu"].strength.check(100)
    with pytest.raises(FaultUsageError, match="has no strength"):
        FIXED.check(2)


def test_the_catalogue_is_complete_and_has_one_shape() -> None:
    listed = json.loads(
        CliRunner().invoke(fault.command, ["list", "--output", "json"]).output
    )

    assert [one["id"] for one in listed] == list(FAULTS)
    for key, one in FAULTS.items():
        assert re.fullmatch(r"[A-Z]\d+(:[a-z]+)?", key)
        assert one.summary.endswith(".")
        assert one.mechanism.endswith(".")
        assert one.slows
        assert one.uses
        assert one.strength.check(one.strength.default) == one.strength.default
    names = {(one.id, one.name) for one in FAULTS.values()}
    assert len({name for _, name in names}) == len(names)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"planted": []}',
        json.dumps(
            {
                "base": None,
                "planted": [
                    {
                        "key": "C2",
                        "strength": 1,
                        "since": 1,
                        "entries": [{"kind": "Unknown", "fields": {}}],
                    }
                ],
            }
        ),
    ],
)
def test_damaged_journal_is_an_error_with_advice(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)

    with pytest.raises(FaultError, match="Use that version, or delete the folder"):
        Journal(tmp_path)


def test_changes_survive_the_journal(tmp_path: Path) -> None:
    changes = [Options(environment={"A": "b"}), Helper("relay", {"delay_ms": 1.5})]
    journal = Journal(tmp_path)
    journal.base = StackOptions(extras=("service",))
    begun = journal.begin(FAULTS["C4"], 2.0, 1.0)
    for change in changes:
        journal.add(begun, change)

    again = Journal(tmp_path)

    assert list(again.changes()) == changes
    assert again.base == journal.base
    assert (again.path.stat().st_mode & 0o777) == 0o600


def test_a_record_of_an_earlier_version_has_options(tmp_path: Path) -> None:
    options = asdict(StackOptions())
    del options["memcached"], options["service"]
    (tmp_path / "stack.json").write_text(json.dumps({"ports": {}, "options": options}))

    assert StackRecord.load(tmp_path).options == StackOptions()


def latency(p50: float, p95: float, errors: int = 0) -> Latency:
    """Return the latency of ten calls in milliseconds."""
    return Latency(10, errors, p50 / 1000, p95 / 1000)


@pytest.mark.parametrize(
    ("before", "after", "slower"),
    [
        (latency(10, 20), latency(13, 20), True),
        (latency(10, 20), latency(11.9, 23.9), False),
        (latency(1, 2), latency(2.5, 3.5), False),
        (latency(10, 20), latency(10, 25), True),
        (latency(10, 20), latency(10, 20, errors=1), True),
        (latency(10, 20), latency(5, 10), False),
    ],
)
def test_impact_is_a_fifth_and_two_milliseconds(
    before: Latency, after: Latency, *, slower: bool
) -> None:
    assert Impact({"GET": before}, {"GET": after}).slower == ["GET"] * slower


def test_percentiles_are_those_of_the_calls() -> None:
    found = Latency.of([number / 1000 for number in range(101, 0, -1)], errors=2)

    assert found == Latency(101, 2, 0.051, 0.096)
