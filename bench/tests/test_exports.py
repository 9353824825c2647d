"""Periodic exports: their schedule, their CPU time and their cost."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from fake_executor import EXPORT_CPU_SECONDS, OFFSETS, FakeExecutor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricsData,
    PeriodicExportingMetricReader,
)
from test_schedule import PLAN, run_plan

from inside.exports import SECONDS, PeriodicExports
from keylag_bench.arms_and_workloads import ARMS, EXPORT_SECONDS
from keylag_bench.export_costs import export_costs
from keylag_bench.intervals import Interval
from keylag_bench.markdown import to_markdown
from keylag_bench.results import analyse

EXPORTING = replace(PLAN, arms=("bare", "keylag", "keylag_export_5"))


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MetricsData]]:
    """Return the data that this process exports."""
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
    """Work for `seconds` in turns; return the number of exports."""
    for _ in range(round(seconds / turn)):
        if thread := exports.begin():
            thread.join()
        exports.add_work(turn)
    return exports.take_counts()["exports"]


@pytest.mark.parametrize(("interval", "expected"), [("5", 20), ("60", 2)])
def test_exports_are_due_after_seconds_of_work(
    collected: list[MetricsData],
    monkeypatch: pytest.MonkeyPatch,
    interval: str,
    expected: int,
) -> None:
    monkeypatch.setenv(SECONDS, interval)
    exports = PeriodicExports()

    assert len(collected) == 1  # what only the first one has to do is done
    assert work(exports, float(interval) * expected) == expected
    assert len(collected) == 1 + expected
    assert {
        data.resource_metrics[0].scope_metrics[0].metrics[0].name for data in collected
    } == {"requests"}


@pytest.mark.usefixtures("collected")
def test_short_work_has_its_share_of_exports_on_average(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """12 s of work contain an export of every 60 s in one process of five."""
    monkeypatch.setenv(SECONDS, "60")
    found = []
    for seed in range(300):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        found.append(work(PeriodicExports(), 12, turn=0.5))

    assert set(found) == {0, 1}
    assert sum(found) / len(found) == pytest.approx(12 / 60, abs=0.05)


@pytest.mark.usefixtures("collected")
def test_cpu_time_of_exports_is_reported_since_the_last_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_without_the_variable_nothing_is_exported(
    collected: list[MetricsData], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECONDS, raising=False)

    assert work(PeriodicExports(), 100) == 0
    assert collected == []


def test_exports_without_a_metric_reader_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeterProvider, "_all_metric_readers", WeakSet())
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    monkeypatch.setenv(SECONDS, "5")

    with pytest.raises(LookupError, match="no metrics are exported"):
        PeriodicExports()


def use_cpu(seconds: float = 0.05) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the worker's meter with an application that does nothing."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "inside"))
    monkeypatch.delenv(SECONDS, raising=False)
    from worker import Instrumentation, Meter

    return Meter(Instrumentation(lambda _environ, _start: []))


def cpu_seconds_of(meter: Any, call: Callable[[], None] = lambda: None) -> float:
    return float(meter.time(call, 1, flush=False)["cpu_seconds"])


def test_cpu_time_between_turns_is_charged(meter: Any) -> None:
    cpu_seconds_of(meter)
    use_cpu()
    meter.tidy()

    assert cpu_seconds_of(meter, use_cpu) >= 0.1


def test_full_garbage_collection_is_not_charged(
    meter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_seconds_of(meter)
    monkeypatch.setattr("gc.collect", lambda: use_cpu(0.5))
    meter.tidy()

    assert cpu_seconds_of(meter) < 0.25


def test_rows_have_the_exports_of_their_turns_and_their_cpu_time() -> None:
    executor = FakeExecutor(export_every=3)
    _, rows, _ = run_plan(EXPORTING, executor)

    with_exports = [row for row in rows if row.exports]
    assert {row.arm for row in with_exports} == {"keylag_export_5"}
    for row in with_exports:
        cost = EXPORT_CPU_SECONDS * row.exports
        assert row.export_cpu_seconds == pytest.approx(cost)
        once = (1.01 + OFFSETS[row.restart]) * row.requests
        assert row.cpu_seconds == pytest.approx(once + cost)


def test_result_has_export_costs_and_ratio_to_keylag() -> None:
    _, rows, call_counts = run_plan(EXPORTING, FakeExecutor(export_every=2))
    own = [row for row in rows if row.workload == "get_cache_off"]
    result = analyse(rows, call_counts, EXPORTING)
    found = result["get_cache_off"]["keylag_export_5"]

    number = sum(row.exports for row in own)
    assert found.export_costs is not None
    assert found.export_costs.number == number > 20
    assert found.export_costs.requests == 3 * 4 * 9
    assert found.export_costs.seconds == pytest.approx(2 * 1.01 * 3 * 4 * 9)
    assert found.export_costs.requests_per_second == pytest.approx(1 / 2.02)
    assert found.export_costs.cpu_ms.as_list() == pytest.approx([250.0] * 3)
    assert found.as_json()["exports"]["number"] == number
    expected = (1.01 * 108 + number * EXPORT_CPU_SECONDS) / (1.01 * 108)
    assert found.by_keylag is not None
    assert found.by_keylag.mid == pytest.approx(expected)
    assert result["get_cache_off"]["keylag"].export_costs is None
    assert f"; {number} exports in 218 s of work, at 0 r" in to_markdown(result)


def test_exports_of_incomplete_rounds_are_left_out() -> None:
    _, rows, _ = run_plan(EXPORTING, FakeExecutor(export_every=1))
    own = [row for row in rows if row.workload == "get_cache_off"]
    cut = [row for row in own if row.arm != "bare" or row.restart == 0]
    found = export_costs("keylag_export_5", cut, EXPORTING)

    assert found is not None
    assert found.number == found.requests == 4 * 9
    assert found.cpu_ms == Interval(float("-inf"), pytest.approx(250), float("inf"))
    assert export_costs("bare", cut, EXPORTING) is None


@pytest.mark.parametrize("seconds", ["5", "60"])
def test_export_arms_set_the_variable_of_the_worker(seconds: str) -> None:
    arm = ARMS[f"keylag_export_{seconds}"]

    assert EXPORT_SECONDS == SECONDS
    assert arm.environment[SECONDS] == seconds
    assert arm.environment["OTEL_METRICS_EXPORTER"] == "otlp"
    assert arm.environment["OTEL_METRIC_EXPORT_INTERVAL"] == "inf"
