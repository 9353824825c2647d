"""`keylag fault start` with its check, whose measurements are given."""

import json
import math
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from keylag.commands import fault
from keylag.errors import WrongUsageError
from keylag.faults.journal import FILE, Journal
from keylag.faults.model import FaultError
from keylag.faults.planting import take_back
from keylag.faults.probe import Latency, Measurement
from keylag.faults.site import Site
from keylag.stack import Stack

FAST: Measurement = {"POST": Latency(24, 0, 0.1, 0.2)}
SLOW: Measurement = {"POST": Latency(24, 1, 0.3, 0.4)}

Start = Callable[..., Result]


@pytest.fixture
def start(
    fault_site: Site, fake_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> Start:
    """A function that starts C2 with the measurements before and after it."""
    monkeypatch.setattr(
        "keylag.commands.fault.Site",
        lambda folder, console: Site(folder, console, fake_stack),
    )

    def run(
        *options: str, before: Measurement = FAST, after: Measurement | None = SLOW
    ) -> Result:
        found = iter([before, after])

        def measure(*_: object) -> Measurement:
            measured = next(found)
            if measured is None:
                raise KeyboardInterrupt
            return measured

        monkeypatch.setattr("keylag.faults.drill.Probe", lambda _: None)
        monkeypatch.setattr("keylag.faults.drill.measure", measure)
        arguments = ["start", "C2", "--state", str(fault_site.folder), *options]
        return CliRunner().invoke(fault.command, arguments)

    return run


def planted(fault_site: Site) -> list[str]:
    """Return the keys of the planted faults."""
    return [one.key for one in Journal(fault_site.folder).planted]


def test_both_measurements_are_printed(start: Start, fault_site: Site) -> None:
    ended = start(before=FAST, after=SLOW)

    assert ended.exit_code == 0
    row = next(line for line in ended.output.splitlines() if "POST" in line)
    assert row.split() == [
        *("POST", "100", "ms", "300", "ms", "200", "ms", "400", "ms"),
        *("1", "of", "24"),
    ]
    assert "Take it back with `keylag fault stop C2`." in ended.output
    assert planted(fault_site) == ["C2"]


def test_without_impact_it_fails_and_stays(start: Start, fault_site: Site) -> None:
    ended = start(before=FAST, after=FAST)

    assert ended.exit_code == 1
    assert isinstance(ended.exception, FaultError)
    assert "planted, but the calls did not become slower" in str(ended.exception)
    assert planted(fault_site) == ["C2"]


def test_strict_takes_it_back(start: Start, fault_site: Site) -> None:
    ended = start("--strict", before=FAST, after=FAST)

    assert ended.exit_code == 1
    assert "was taken back" in str(ended.exception)
    assert planted(fault_site) == []


def test_fault_for_a_time_does_not_stay_without_impact(
    start: Start, fault_site: Site
) -> None:
    ended = start("--for", "5m", before=FAST, after=FAST)

    assert ended.exit_code == 1
    assert planted(fault_site) == []


def test_fault_that_somebody_took_back_is_not_taken_back_again(
    start: Start, fault_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def take_back_meanwhile(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            take_back(fault_site)

    monkeypatch.setattr("keylag.commands.fault.time.sleep", take_back_meanwhile)

    assert "C2 cache-server-hung was already taken back." in start("--for", "5m").output


def test_strict_needs_the_check(start: Start, fault_site: Site) -> None:
    ended = start("--strict", "--no-check")

    assert isinstance(ended.exception, WrongUsageError)
    assert "leave out --no-check" in str(ended.exception)
    assert planted(fault_site) == []


def test_interruption_takes_it_back(start: Start, fault_site: Site) -> None:
    ended = start(before=FAST, after=None)

    assert ended.exit_code != 0
    assert planted(fault_site) == []
    assert fault_site.stack.is_up()


def test_json_has_both_measurements(start: Start) -> None:
    ended = start("--output", "json", before=FAST, after=SLOW)

    result = json.loads(ended.stdout)
    assert result["impact"]["slower"] == ["POST"]
    assert result["impact"]["before"]["POST"]["p95"] == 0.2
    assert result["impact"]["after"]["POST"]["errors"] == 1


def test_calls_that_all_fail_have_no_latency_in_json(start: Start) -> None:
    dead = {"POST": Latency(24, 24, math.nan, math.nan)}
    ended = start("--output", "json", before=FAST, after=dead)

    assert "NaN" not in ended.stdout
    assert json.loads(ended.stdout)["impact"]["after"]["POST"]["p50"] is None


def test_without_a_check_it_is_planted_for_a_time(
    start: Start, fault_site: Site
) -> None:
    ended = start("--no-check", "--for", "0.1s")

    assert ended.exit_code == 0
    assert ended.output.endswith("Took back C2 cache-server-hung.\n")
    assert not (fault_site.folder / FILE).exists()


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1h", 3600), ("0.5", 0.5)]
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert fault.DurationParam().convert(text, None, None) == seconds


def test_other_durations_are_refused() -> None:
    with pytest.raises(click.BadParameter, match="60s or 5m"):
        fault.DurationParam().convert("soon", None, None)
