"""The pages of what laboratories measured."""

import math
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from keylag import processes
from keylag.experiment.interval import Interval
from keylag.lab import accuracy, intervals
from keylag.lab.accuracy import Figure
from keylag.lab.galera.failures import (
    FAILURES,
    NO_ANSWER,
    Answers,
    Failure,
    Healing,
    Outcome,
    silent_link,
)
from keylag.lab.galera.measurement import Latencies, Measured
from keylag.lab.galera.rally import Iterations
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.load import LabLoad
from keylag.lab.neighbours.host import PRESSURES, HostFigures
from keylag.lab.neighbours.lab import Neighbours
from keylag.lab.neighbours.measurement import Calls as TokenCalls
from keylag.lab.neighbours.measurement import Measured as Beside
from keylag.lab.neighbours.options import NeighbourOptions
from keylag.lab.neighbours.ycsb import TenantFigures
from keylag.lab.storage import fio
from keylag.lab.storage.calls import KINDS
from keylag.lab.storage.calls import Calls as StorageCalls
from keylag.lab.storage.fio import Flush, Rate
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.layers import Layer
from keylag.lab.storage.options import StorageOptions
from keylag.lab.swift.bench import BenchLoad, Rates
from keylag.lab.swift.bench import Rate as RequestRate
from keylag.lab.swift.lab import SwiftRegions
from keylag.lab.swift.measurement import LABELS, Calls
from keylag.lab.swift.measurement import Measured as SwiftMeasured
from keylag.phases import CATEGORY_NAMES
from keylag_dev import (
    galera_failures_page,
    galera_rally_page,
    galera_settings_page,
    galera_silence_page,
    galera_wan_page,
    galera_workers_page,
    lab_page,
    lab_rules_page,
    link_accuracy_page,
    machine_watch,
    neighbours_page,
    storage_diagnosis_page,
    storage_layers_page,
    storage_page,
    swift_regions_page,
    swift_writes_page,
)
from keylag_dev.lab_page import Gaps, LabCost
from keylag_dev.lab_rules_page import Trial
from keylag_dev.machine_watch import Sample
from keylag_dev.storage_diagnosis_page import Trial as StorageTrial


def test_page_of_links_names_the_figures_that_are_not_accurate() -> None:
    accurate = [
        Figure(accuracy.PING, 0.1, 0.1012, 0.002),
        Figure(accuracy.HANDSHAKE_TIME, 0.1, 0.1, 0.002),
        Figure(accuracy.LOSS, 0.01, 0.0123, 0.0025),
    ]
    rate = Figure(accuracy.THROUGHPUT, 6e6, 5.004e6, 1.2e5)

    page = link_accuracy_page.render(
        [
            link_accuracy_page.Measured(Link(0.1), accurate, 123.4e6),
            link_accuracy_page.Measured(Link(0.1), [*accurate, rate], 4e6),
        ]
    )

    figures = "101.2 | 100.0 | - | 1.23"
    assert f"| 100 ms, loss 0%, unlimited | {figures} | - | 123.4 | yes |" in page
    assert f"| {figures} | 5.004 | 4.0 | **no** |" in page
    assert "6 of 7 figures are accurate" in page


def test_page_of_token_calls_has_a_row_for_each_round_trip() -> None:
    calls = {
        "POST /v3/auth/tokens password": Latencies(
            9, 1, intervals.median([0.3] * 9), 0.25
        )
    }
    found = Measured(
        Link(0.2), calls, 7, 4321.0, ("D1",), conflicts=3, second_site=calls
    )

    far = replace(found, bytes_per_write=None, second_site={})

    results = {
        ("one segment", 0.2): found,
        ("the database of site b", 0.0): far,
        ("the database of site b", 0.5): far,
    }
    page = galera_wan_page.render(results)

    figures = "300 [300, 300] | 250 | - | - | - | - | 7"
    row = f"| one segment | 200 ms | {figures} | 4.3 | 3 | 2 | - | D1 | **no** |"
    assert row in page
    far_figures = f"{figures} | - | 3 | 1 | D1 | D1"
    assert f"| the database of site b | 0 ms | {far_figures} | - |" in page
    assert f"| the database of site b | 500 ms | {far_figures} | yes |" in page
    assert f"| no cache | 100 ms |{13 * ' - |'}" in page


def test_page_of_failures_has_a_row_for_each() -> None:
    found = Outcome(
        FAILURES["link"],
        calls=50,
        codes={"500": 3, NO_ANSWER: 1},
        meanwhile={"GET": Answers(9, 1), "POST": Answers(0, 3)},
        failing_seconds=7.5,
        longest_seconds=12.34,
        longest_gap_seconds=20.0,
        healing=Healing(3.21, {"b2": "a1", "b1": "a2"}),
        revoked=10,
        missing=1,
        hidden=5,
    )

    far_and_unsegmented = galera_failures_page.Variant(0.5, segments=False)

    page = galera_failures_page.render({("link", far_and_unsegmented): found})

    row = f"{FAILURES['link'].summary} | 500 ms | one | 0 of 3 | 9 of 10 | - "
    failed = f"| 4 of 50 (500: 3, {NO_ANSWER}: 1) | 7.5 | 12.3 | 20.0 | 3.2"
    donors = "b1: a2, b2: a1"
    missing = "1 of 10; up to 5 could be hidden"
    assert f"| {row}{failed} | {donors} | {missing} |" in page
    assert f"{FAILURES['site'].summary} | 100 ms | two |{10 * ' - |'}" in page


def test_page_of_rally_compares_segments_at_each_round_trip() -> None:
    def run(seconds: float) -> Iterations:
        parts = {"password_hash": 0.1, "sql": seconds / 2, "orm": 0.01, "cache": 0.02}
        return Iterations((seconds,) * 9, ("Conflict",), {}, (0.0, 60.0), parts)

    runs = {
        (scenario, trip, segments): [
            run(k * (trip + (0.1 if segments else 0.2))) for _ in range(2)
        ]
        for k, scenario in enumerate(galera_rally_page.SCENARIOS, start=3)
        for trip in galera_rally_page.ROUND_TRIPS_SECONDS
        for segments in (False, True)
    }

    page = galera_rally_page.render(runs)

    assert "| 100 ms | 900 | 600 | 33.3 % [33.3, 33.3] | 3 % |" in page
    assert "| 300 ms | 2000 | 1600 |" in page
    assert "Each ms of the round trip adds 3.00 ms [3.00, 3.00]" in page
    parts = "100 (100, 100) | 300 (300, 300) | 30 (30, 30) | 170 (170, 170)"
    busy = "0.06 (0.06, 0.06)"
    assert f"| 100 ms | two | {parts} | {busy} |" in page
    assert "Failed iterations: 40." in page


def test_page_of_rally_goes_without_a_scenario_that_failed() -> None:
    page = galera_rally_page.render({})

    assert "| 100 ms | - | - | - | 3 % |" in page
    assert "Each ms of the round trip adds - to an iteration" in page
    assert "| 100 ms | one | - | - | - | - | - |" in page


def lost(failure: Failure) -> Outcome:
    """Two of 50 calls had no answer."""
    return Outcome(
        failure,
        calls=50,
        codes={NO_ANSWER: 2},
        meanwhile={},
        failing_seconds=0.0,
        longest_seconds=6.54,
        longest_gap_seconds=5.43,
        healing=Healing(3.21, {}),
        revoked=10,
        missing=0,
        hidden=0,
    )


def test_page_of_settings_compares_them() -> None:
    variant = galera_settings_page.Variant("Galera's own", segments=False)
    run = Iterations((2.0, 2.0, 2.0), ("Conflict",), {}, (0.0, 60.0), {"sql": 0.5})

    page = galera_settings_page.render(
        galera_settings_page.Results(
            rally={("create-user", variant): run},
            lossy={(0.01, variant): galera_settings_page.Lossy(90, 4, 3)},
            killed={variant: lost(FAILURES["near-node"])},
        )
    )

    cells = "Galera's own | one"
    assert f"| create-user | {cells} | 2000 | 500 | 1 |" in page
    assert f"| 1% | {cells} | 3 | 4 of 90 |" in page
    assert f"| a2 is killed | {cells} | 6.5 | 5.4 | 2 of 50 |" in page
    assert "| 5% | for a long link | two | - | - |" in page


def test_page_of_silences_compares_the_settings_for_each() -> None:
    found = [
        galera_silence_page.Silence(settings, 7, changes, lost(silent_link(7.0)))
        for settings, changes in (("for a long link", 0), ("Galera's own", 2))
    ]

    page = galera_silence_page.render(found)

    own = "| 7 s | Galera's own | 2 | 2 of 50 | 6.5 | 5.4 |"
    long = "| 7 s | for a long link | 0 | 2 of 50 | 6.5 | 5.4 |"
    assert f"{own}\n{long}" in page


def test_page_of_workers_shows_what_is_outside_of_keystone() -> None:
    parts = {"password_hash": 0.4, "sql": 0.1, "cache": 0.02}
    found = Iterations((0.6, 0.8), (), {}, (0.0, 1.4), parts)
    kind = galera_workers_page.Kind("create-user", 0.1, 1)

    page = galera_workers_page.render({kind: [found, found]})

    cells = "400 (400, 400) | 100 (100, 100) | 20 (20, 20) | 180 (180, 180)"
    row = f"| create-user | 100 ms | 1 | 700 [516, 884] | {cells} | 0.74 (0.74, 0.74)"
    assert f"{row} | 0 |" in page
    assert "| create-user | 500 ms | 5 | - | - | - | - | - | - | 0 |" in page


def test_an_error_costs_a_page_one_measurement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gaps = Gaps()
    measured = []
    for number in range(3):
        with gaps.noting(f"row {number}"):
            if number == 1:
                message = "No database node runs."
                raise LabError(message)
            measured.append(number)

    assert measured == [0, 2]
    assert "Not measured, because of errors: row 1." in gaps.sentence()
    assert capsys.readouterr().out == "row 1: No database node runs.\n"
    assert not Gaps().sentence()


def test_a_page_reports_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    gaps = Gaps()
    with gaps.reporting("row 1"):
        pass
    with gaps.reporting("row 2"):
        message = "No database node runs."
        raise LabError(message)

    assert gaps.names == ["row 2"]
    told = "row 1: measured\nrow 2: No database node runs.\n"
    assert capsys.readouterr().out == told


def test_page_of_swift_compares_sets_and_tokens() -> None:
    def measured(region: int, seconds: float) -> SwiftMeasured:
        calls = {
            label: Calls(9, 0, intervals.mean([seconds] * 9), seconds / 10, 0.75)
            for label in LABELS
        }
        return SwiftMeasured(region, calls, 6, 0.3, 0.001)

    sets = [
        (name, measured(region, seconds))
        for name, seconds in {"set1": 0.1, "set2": 0.4, "set3": 0.125}.items()
        for region in (1, 2)
    ]

    tokens = [
        ("near", "shared, warm", measured(2, 0.2)),
        ("near", "shared, cold", measured(2, 0.2)),
        ("far", "none", replace(measured(2, 0.2), cached_seconds=0.0)),
    ]

    page = swift_regions_page.render(sets, [], tokens)

    assert "| set1 | 1 | GET | 100 | 0 |" in page
    assert "| set2 | 1 | PUT | 400 | 0 |" in page
    assert "| set3 | 2 | GET | 125 | 0 |" in page
    assert "| 2 | near | shared, warm | 27 | 6 | 300 | 1.0 | 10% | 10% | 10% |" in page
    assert "| 2 | near | shared, cold | 27 | 6 | 300 | 1.0 | 75% | 75% | 75% |" in page
    assert "| 2 | far | none | 27 | 6 | 300 | - | 10% | 10% | 10% |" in page


def swift_rates(per_second: float, failed: int = 0) -> Rates:
    """Return what swift-bench measured if all requests have the same rate."""
    return {
        one: RequestRate(100, failed, per_second) for one in ("PUT", "GET", "DELETE")
    }


def test_page_of_swift_has_rates_as_shares_of_the_first_set() -> None:
    base = [("set1", clients, swift_rates(80.0)) for clients in (4, 16) * 3]
    few = [("set2", 4, swift_rates(one, failed=2)) for one in (3.2, 4.0, 5.0)]
    many = [("set2", 16, swift_rates(20.0))]

    page = swift_regions_page.render([], [*base, *few, *many], [])

    assert "| set | request | 4 clients, /s | share | 16 clients, /s | share |" in page
    assert "| set1 | PUT | 80.0 | 100% | 80.0 | 100% | - | - | - | 0 |" in page
    row = "| 4.1 [1.8, 6.3] | 5% [3, 9] | 20.0 | 25% | - | - | 20 to 30 % | 6 |"
    assert f"| set2 | PUT {row}" in page
    assert f"| set3 | DELETE |{6 * ' - |'} about half | 0 |" in page


def test_runs_of_swift_bench_are_in_random_order_and_as_long_as_a_set_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[BenchLoad] = []

    def run(_: SwiftRegions, load: BenchLoad, __: Path) -> Rates:
        sent.append(load)
        if len(sent) == 2:
            message = "swift-bench failed."
            raise LabError(message)
        return swift_rates(4.0)

    monkeypatch.setattr(swift_regions_page, "run_bench", run)
    gaps, lab = Gaps(), SwiftRegions(tmp_path)

    found = list(swift_regions_page.measure_rates(lab, "set2", tmp_path, gaps))

    assert len(sent) == 9
    assert len(found) == 8
    assert len(gaps.names) == 1
    clients = [one.clients for one in sent]
    assert clients != sorted(clients)
    assert {one.clients: (one.objects, one.gets) for one in sent} == {
        4: (32, 96),
        16: (128, 384),
        64: (512, 1000),
    }


def neighbours(tenants: int, *levers: str, p95_seconds: float = 0.02) -> Beside:
    """Return what was measured beside some tenants."""
    latency = intervals.median([p95_seconds] * 9)
    categories = {name: {"p50": 0.001, "p95": 0.004} for name in CATEGORY_NAMES}
    calls = {"GET /v3/auth/tokens": TokenCalls(9, 1, latency, latency, categories)}
    p95 = {"READ": 0.003, "UPDATE": 0.001}
    each = [TenantFigures(number + 1, 400.0, p95) for number in range(tenants)]
    pressure = dict.fromkeys(PRESSURES, 0.125)
    host = HostFigures({"iowait": 0.01}, 2.5, 0.5, 0.0002, 0.004, 0.001, 99.0, pressure)
    return Beside(NeighbourOptions(tenants), levers, 40.0, calls, each, host)


def test_page_of_neighbours_has_a_row_for_each_number_and_lever() -> None:
    rounds = [
        {
            "none": neighbours(3, p95_seconds=0.02),
            "ionice": neighbours(3, "ionice", p95_seconds=seconds),
        }
        for seconds in [0.009, 0.01, 0.0111] * 2
    ]
    failed = [{"ionice": neighbours(3, p95_seconds=9.0)}, {"none": neighbours(3)}]

    page = neighbours_page.render([neighbours(0), neighbours(2)], rounds + failed)

    assert "| 0 | - | a validation | 9 | 1 | 20 [20, 20] | 20 [20, 20] |" in page
    assert "| 2 | 500 | a validation | p95 | 4.0 | 4.0 | 4.0 |" in page
    machine = "50% | 2.50 | 0.20 | 4.00 | 1.00 | 12.5% | 12.5% | 12.5% | 1.0% | 0.0% |"
    assert f"| 0 | - | 0 | - | - | {machine}" in page
    assert f"| 2 | 500 | 800 | 3.0 | 1.0 | {machine}" in page
    row = "| `ionice` | - | - | 0.50 [0.45, 0.55] (54, 54) | 0.50 [0.45, 0.55] (54, 54)"
    assert f"{row} | - | 1.00 |" in page
    assert "| `cpu-limit` | - |" in page


def test_all_users_log_in_before_each_number_of_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    lab = Neighbours(tmp_path)
    monkeypatch.setattr(
        Neighbours, "set_neighbours", lambda _, one, __: done.append(one)
    )
    monkeypatch.setattr(LabLoad, "send", lambda *_: done.append("log-ins"))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(neighbours_page, "measure", lambda *_: done[-1])

    found = neighbours_page._measure_numbers(lab, iter([tmp_path] * 99), Gaps())

    assert found == list(neighbours_page.LOADS)
    starts = [done[number : number + 3] for number in range(0, len(done), 3)]
    alone = NeighbourOptions(0)
    assert all(one[:2] == [alone, "log-ins"] for one in starts)
    order = [one[2] for one in starts]
    assert order != found
    assert set(order) == set(found)


def test_a_load_that_fails_costs_the_page_of_neighbours_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Switches:
        def switch_to(self, names: list[str]) -> None:
            switched.append(names)

    def fail_once(*_: object) -> Beside:
        if switched[-1] == ["bfq"] and not gaps.names:
            message = "The load could not be sent"
            raise LabError(message)
        return neighbours(3)

    switched: list[list[str]] = []
    gaps = Gaps()
    monkeypatch.setattr(Neighbours, "set_neighbours", lambda *_: None)
    monkeypatch.setattr(Neighbours, "switches", lambda _: Switches())
    monkeypatch.setattr(LabLoad, "send", lambda *_: None)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(neighbours_page, "measure", fail_once)

    folders = iter([tmp_path] * 99)
    found = list(neighbours_page._measure_levers(Neighbours(tmp_path), folders, gaps))

    assert gaps.names == ["round 1, bfq"]
    everything = {"none", *neighbours_page.LEVERS}
    assert [set(one) for one in found] == [everything - {"bfq"}, *[everything] * 4]


def test_memory_of_a_laboratory_is_that_of_its_processes(tmp_path: Path) -> None:
    cost = LabCost(tmp_path)
    assert lab_page.used_bytes(tmp_path) == 0
    command = ["python3", "-c", "import time; print(flush=True); time.sleep(60)"]
    environment = {**os.environ, **processes.stack_variables(tmp_path, "one")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as one:
        assert one.stdout
        one.stdout.readline()
        cost.note_start()
        one.kill()

    assert 1e6 < cost.used_bytes < 1e8
    assert f"The first start took {cost.start_seconds:.0f} s on" in cost.sentence()


def test_page_of_writes_says_what_distance_adds() -> None:
    def measured(seconds: float) -> SwiftMeasured:
        calls = {
            label: Calls(9, 0, intervals.mean([seconds] * 9), 0.001) for label in LABELS
        }
        return SwiftMeasured(1, calls, 6, 0.3, 0.001)

    near, far = (swift_writes_page.ROUND_TRIPS_SECONDS[one] for one in (0, -1))
    page = swift_writes_page.render(
        {
            (1.0, near): measured(0.1),
            (1.0, far): measured(0.1 + 2 * (far - near)),
            (0.05, far): measured(0.2),
        }
    )

    assert "| 1 s | 20 ms | 100 | 100 | 100 | 0 |" in page
    assert "| 0.05 s | 20 ms | - | - | - | - |" in page
    assert "With 1 s, each ms of the round trip adds 2.0 ms to a GET object" in page
    assert "With 0.05 s" not in page


def test_cost_of_a_laboratory_says_how_fast_the_machine_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_watch, "SAMPLE_SECONDS", 0.01)

    with lab_page.measuring(StorageLab(tmp_path)) as (_, cost):
        time.sleep(0.1)

    assert "Python counted to a million in" in cost.sentence()


@pytest.mark.parametrize(("disturbed", "warnings"), [(0, 0), (5, 0), (6, 1)])
def test_page_says_whether_the_machine_was_steady(
    disturbed: int, warnings: int
) -> None:
    idle, stolen = Sample(0.02, 0.0), Sample(0.03, 0.1)

    told = machine_watch.describe([idle] * (100 - disturbed) + [stolen] * disturbed)

    assert "in 20 ms of processor time" in told
    assert f"more than 5% in {disturbed} of 100 samples" in told
    assert told.count("The machine was not steady") == warnings


def test_page_of_rules_says_which_rows_are_right() -> None:
    times = {
        "POST": intervals.median([0.3] * 9),
        "DELETE": intervals.median([0.02]),
    }
    page = lab_rules_page.render(
        [
            Trial("", "nothing", "-", ()),
            Trial("D9", "a slow node", "20 ms", ("D9", "D2"), times),
            Trial("N1", "far clients", "20 ms", ()),
            Trial("N1", "far clients", "100 ms", None),
        ]
    )

    assert "| - | nothing | - | - | - | yes |" in page
    shown = "POST 300 [300, 300], DELETE 20"
    assert f"| D9 | a slow node | 20 ms | {shown} | D9, D2 | yes |" in page
    assert "| N1 | far clients | 20 ms | - | - | **no** |" in page
    assert "| N1 | far clients | 100 ms | - | unknown | - |" in page
    assert "2 of 4 rows are right." in page


def storage_calls(seconds: float) -> storage_page.Measured:
    """Return what was measured on a storage on which all calls take as long."""
    calls = StorageCalls(9, 1, intervals.median([seconds] * 9), 0.01, 4.0)
    flushed = Flush(160.0, 0.0055, 0.0007, 0.001)
    return storage_page.Measured(flushed, dict.fromkeys(KINDS, calls))


def test_page_of_storage_has_calls_and_rates() -> None:
    rounds = [
        {
            "device with 0 ms, flush 1": storage_calls(0.05 + start),
            "device with 5 ms, flush 1": storage_calls(0.1 + 2 * start),
        }
        for start in (0.0, 0.001, 0.002)
    ]
    failed = {"own disk, flush 1": storage_calls(0.05)}
    rates = [Rate("randread", "4k", 8, 583.4, 0.01, 0.04)]
    matrices = {"one": rates, "two": rates}
    page = storage_page.render([*rounds, failed], matrices)

    assert "| device with 5 ms, flush 1 | 6.20 | 102 [97, 107] |" in page
    assert "| device with 5 ms, flush 1 | 51 [49, 53] |" in page
    assert "| device with 0 ms, flush 1 | 51" not in page
    assert "| own disk, flush 1 | 6.20 | 50 |" in page
    assert page.count("| own disk, flush 1 |") == 1
    calls = (2 * len(rounds) + 1) * len(KINDS)
    assert f"{9 * calls} calls succeeded, and {calls} failed." in page
    assert "| randread | 4k | 8 | 583 | 583 |" in page


def test_page_of_the_diagnosis_on_storage_says_what_is_right() -> None:
    storage = "device with 30 ms"
    trials = [
        StorageTrial("nothing", "own disk", "", ""),
        StorageTrial("nothing", "device with 0 ms", "", "D2: its CPU"),
        StorageTrial("slow storage", storage, "its storage", "D2: its storage"),
        StorageTrial("locks", "100 ms", "D4:", "D2: its CPU"),
        StorageTrial("distance", "2 ms", "D1:", ""),
    ]

    page = storage_diagnosis_page.render(trials)

    assert "| nothing | own disk | - | yes |" in page
    assert "| nothing | device with 0 ms | D2: its CPU | **no** |" in page
    assert f"| slow storage | {storage} | D2: its storage | yes |" in page
    assert "| locks | 100 ms | D2: its CPU | **no** |" in page
    assert "| distance | 2 ms | - | **no** |" in page
    assert "2 of 5 are right." in page


def test_page_of_layers_has_their_shares_and_stacks() -> None:
    stack = [
        Layer("file system", 0.002, 0.0005),
        Layer("delay", 0.0015, 0.001),
        Layer("file in memory", 0.0005, 0.0005),
    ]

    page = storage_layers_page.render({"device with 1 ms": stack})

    assert "| device with 1 ms | file system | 2.000 | 0.500 | 25% |" in page
    assert "| device with 1 ms | delay | 1.500 | 1.000 | 50% |" in page
    assert "file system;delay 1000\n" in page


def test_storages_take_turns_in_random_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[StorageOptions] = []
    monkeypatch.setattr(StorageLab, "change", lambda _, options: order.append(options))
    monkeypatch.setattr(StorageLab, "in_group", lambda _: [])
    monkeypatch.setattr(fio, "flush", lambda *_, **__: None)
    monkeypatch.setattr(storage_page, "measure", lambda *_: {})

    gaps = Gaps()
    found = storage_page.measure_round(StorageLab(tmp_path), 1, gaps)

    assert gaps.names == []
    assert set(found) == {str(one) for one in storage_page.STORAGES}
    assert list(found) == [str(one) for one in order]
    assert order != list(storage_page.STORAGES)


def test_few_values_have_no_interval() -> None:
    assert lab_page.with_interval(Interval(0.5, 1.25, 2.0), 1) == "1.2 [0.5, 2.0]"
    assert lab_page.milliseconds(Interval(-math.inf, 1.5, math.inf)) == "1500"
