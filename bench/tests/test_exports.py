"""Periodic exports: made by the work of a process, and charged to it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from fakes import EXPORT_CPU_SECONDS, WOBBLE, FakeExecutor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricsData,
    PeriodicExportingMetricReader,
)
from test_schedule import PLAN, measured

from inside.exports import SECONDS, PeriodicExports
from keylag_bench.exports import exported
from keylag_bench.intervals import Interval
from keylag_bench.markdown import as_markdown
from keylag_bench.results import analyse
from keylag_bench.tables import ARMS, EXPORT_SECONDS

EXPORTING = replace(PLAN, arms=("bare", "keylag", "keylag_export_5"))


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MetricsData]]:
    """Give what this process has exported."""
    monkeypatch.setattr(MeterProvider, "_all_metric_readers", WeakSet())
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    found: list[MetricsData] = []

    def keep(data: MetricsData) -> str:
        found.append(data)
        return ""

    exporter = ConsoleMetricExporter(StringIO(), keep)
    reader = PeriodicExportingMetricReader(exporter, float("inf"))
    provider = MeterProvider([reader], shutdown_on_exit=False)
    provider.get_meter("test").create_counter("requests").add(1)
    yield found
    provider.shutdown()


def work(exports: PeriodicExports, seconds: float, turn: float = 0.05) -> float:
    """Work for so many seconds, turn by turn; return the exports in them."""
    for _ in range(round(seconds / turn)):
        if thread := exports.begin():
            thread.join()
        exports.add_work(turn)
    return exports.take_counts()["exports"]


@pytest.mark.parametrize(("interval", "expected"), [("5", 20), ("60", 2)])
def test_exports_come_with_the_work(
    collected: list[MetricsData],
    monkeypatch: pytest.MonkeyPatch,
    interval: str,
    expected: int,
) -> None:
    """One in so many seconds of work, each with what has been counted."""
    monkeypatch.setenv(SECONDS, interval)
    exports = PeriodicExports()

    assert len(collected) == 1  # what only the first one has to do is done
    assert work(exports, float(interval) * expected) == expected
    assert len(collected) == 1 + expected
    assert {
        data.resource_metrics[0].scope_metrics[0].metrics[0].name for data in collected
    } == {"requests"}


@pytest.mark.usefixtures("collected")
def test_short_work_has_its_share_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve seconds contain one export of 60 s in five processes."""
    monkeypatch.setenv(SECONDS, "60")
    found = []
    for seed in range(300):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        found.append(work(PeriodicExports(), 12, turn=0.5))

    assert set(found) == {0, 1}
    assert sum(found) / len(found) == pytest.approx(12 / 60, abs=0.05)


@pytest.mark.usefixtures("collected")
def test_the_processor_time_of_exports_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of those since the last question; what only the first one does is left out."""
    monkeypatch.setenv(SECONDS, "5")
    exports = PeriodicExports()
    first = exports.take_counts()
    exports.add_work(5)
    thread = exports.begin()
    assert thread
    thread.join()
    second, third = exports.take_counts(), exports.take_counts()

    assert first == third == {"exports": 0, "export_cpu_seconds": 0.0}
    assert second["exports"] == 1
    assert second["export_cpu_seconds"] > 0


def test_there_are_none_unless_they_are_wanted(
    collected: list[MetricsData], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the work."""
    monkeypatch.delenv(SECONDS, raising=False)

    assert work(PeriodicExports(), 100) == 0
    assert collected == []


def test_exports_of_nothing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm without a metrics reader would measure nothing."""
    monkeypatch.setattr(MeterProvider, "_all_metric_readers", WeakSet())
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    monkeypatch.setenv(SECONDS, "5")

    with pytest.raises(LookupError, match="no metrics are exported"):
        PeriodicExports()


def burn(seconds: float = 0.05) -> None:
    """Use the processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the worker's meter, on an instrumentation that does nothing."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "inside"))
    monkeypatch.delenv(SECONDS, raising=False)
    from worker import Instrumentation, Meter

    return Meter(Instrumentation(lambda _environ, _start: []))


def timed(meter: Any, call: Callable[[], None] = lambda: None) -> float:
    """Return the CPU seconds of one call."""
    return float(meter.time(call, 1, flush=False)["cpu_seconds"])


def test_what_runs_between_the_turns_is_charged(meter: Any) -> None:
    """An exporter's thread may work before the garbage is collected, too."""
    timed(meter)
    burn()
    meter.tidy()

    assert timed(meter, burn) >= 0.1


def test_a_full_collection_of_garbage_is_not_charged(
    meter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes."""
    timed(meter)
    monkeypatch.setattr("gc.collect", lambda: burn(0.5))
    meter.tidy()

    assert timed(meter) < 0.25


def test_exports_are_added_up_in_rows() -> None:
    """A row has those of its turns, and their CPU time is part of the arm's."""
    executor = FakeExecutor(export_every=3)
    _, rows, _ = measured(EXPORTING, executor)

    with_exports = [row for row in rows if row.exports]
    assert {row.arm for row in with_exports} == {"keylag_export_5"}
    for row in with_exports:
        cost = EXPORT_CPU_SECONDS * row.exports
        assert row.export_cpu_seconds == pytest.approx(cost)
        once = (1.01 + WOBBLE[row.restart]) * row.requests
        assert row.cpu_seconds == pytest.approx(once + cost)


def test_the_cost_of_an_export_comes_out() -> None:
    """Beside the ratio to bare Keystone, and to Keylag without exports."""
    _, rows, counted = measured(EXPORTING, FakeExecutor(export_every=2))
    own = [row for row in rows if row.workload == "get_cache_off"]
    result = analyse(rows, counted, EXPORTING)
    found = result["get_cache_off"]["keylag_export_5"]

    number = sum(row.exports for row in own)
    assert found.exported is not None
    assert found.exported.number == number > 20
    assert found.exported.requests == 3 * 4 * 9
    assert found.exported.seconds == pytest.approx(2 * 1.01 * 3 * 4 * 9)
    assert found.exported.requests_per_second == pytest.approx(1 / 2.02)
    assert found.exported.cpu_ms.as_list() == pytest.approx([250.0] * 3)
    assert found.as_json()["exports"]["number"] == number
    expected = (1.01 * 108 + number * EXPORT_CPU_SECONDS) / (1.01 * 108)
    assert found.by_keylag is not None
    assert found.by_keylag.mid == pytest.approx(expected)
    assert result["get_cache_off"]["keylag"].exported is None
    assert f"; {number} were made in 218 s of work, at 0 r" in as_markdown(result)


def test_exports_of_blocks_that_are_not_whole_are_left_out() -> None:
    """They are in no ratio either; without any there is nothing to say."""
    _, rows, _ = measured(EXPORTING, FakeExecutor(export_every=1))
    own = [row for row in rows if row.workload == "get_cache_off"]
    cut = [row for row in own if row.arm != "bare" or row.restart == 0]
    found = exported("keylag_export_5", cut, EXPORTING)

    assert found is not None
    assert found.number == found.requests == 4 * 9
    assert found.cpu_ms == Interval(float("-inf"), pytest.approx(250), float("inf"))
    assert exported("bare", cut, EXPORTING) is None


@pytest.mark.parametrize("seconds", ["5", "60"])
def test_the_arms_say_their_interval(seconds: str) -> None:
    """To the program that runs inside Keystone, by one name."""
    arm = ARMS[f"keylag_export_{seconds}"]

    assert EXPORT_SECONDS == SECONDS
    assert arm.environment[SECONDS] == seconds
    assert arm.environment["OTEL_METRICS_EXPORTER"] == "otlp"
    assert arm.environment["OTEL_METRIC_EXPORT_INTERVAL"] == "inf"
