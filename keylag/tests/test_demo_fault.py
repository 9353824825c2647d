"""Faults in the demo; tests/test_demo.py plants one in a real stack."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from diagnosed import judge, make_facts
from rich.console import Console
from test_diagnosis_rules import CASES

from keylag import demo, demo_fault
from keylag.commands import demo as command
from keylag.diagnosis.facts import Window
from keylag.faults import planting
from keylag.faults.model import FaultUsageError
from keylag.faults.registry import FAULTS


@pytest.mark.parametrize("name", ["C2", "cache-server-hung", "c2:stopped"])
def test_fault_has_the_names_of_the_list(name: str) -> None:
    assert demo_fault.find_fault(name).id == "C2"


@pytest.mark.parametrize("name", ["token-cache", "D7"])
def test_fault_of_another_stack_is_refused_with_those_that_work(name: str) -> None:
    with pytest.raises(FaultUsageError) as refused:
        demo_fault.find_fault(name)

    message = str(refused.value)
    assert "keylag up --with" in message
    assert f"keylag fault start {planting.find_fault(name).key}" in message
    assert "The demo can show C1, C1:sections, C1:expiring, C2, " in message


def test_fault_that_slows_no_call_of_the_demo_is_refused() -> None:
    with pytest.raises(FaultUsageError, match="slows no call that the demo sends"):
        demo_fault.find_fault("D2:disk")


def test_refused_fault_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(command, "set_up", started.append)

    result = CliRunner().invoke(command.command, ["--fault=cache-serve-hung"])

    assert "Did you mean `cache-server-hung`?" in str(result.exception)
    assert not started


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_interrupted_run_takes_the_fault_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[BaseException]
) -> None:
    planted: list[str] = []

    @contextmanager
    def plant(_: object, fault: Any) -> Iterator[None]:
        planted.append(fault.key)
        try:
            yield
        finally:
            planted.remove(fault.key)

    def fail(*_: object) -> None:
        assert planted == ["C2"]
        raise error

    monkeypatch.setattr(planting, "planted", plant)
    monkeypatch.setattr(demo, "measure_run", fail)

    with pytest.raises(error):
        demo_fault.measure(
            FAULTS["C2"],
            None,  # type: ignore[arg-type] - the stack is not reached
            Window(1, 2),
            tmp_path,
            Console(quiet=True),
        )

    assert planted == []


def test_verdict_has_what_was_planted_beside_what_was_found() -> None:
    found = judge(CASES["C4"]())

    assert demo_fault.verdict(FAULTS["C4"], found) == (
        "planted: C4 cache-far; found: C4 cache-far"
    )


def test_verdict_admits_that_nothing_was_found() -> None:
    text = demo_fault.verdict(FAULTS["C4"], judge(make_facts()))

    assert text == "planted: C4 cache-far; found: nothing"
