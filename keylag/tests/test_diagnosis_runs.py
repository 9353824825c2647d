"""Diagnoses of what a load left."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from diagnosed import judge, make_facts
from fake_experiment import FakeExecutor, MakeRun, fake_rows
from test_diagnosis_rules import CASES

from keylag.commands import diagnose
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.run_environment import CACHE_BACKEND

CALL = {
    "method": "GET",
    "route": "/v3/auth/tokens",
    "auth_method": None,
    "requests": 100,
    "wall_seconds": {"mean": 0.2},
    "sql_statements": {"mean": 61.0},
    "cache_calls": {"mean": 0.0},
    "cells": {
        "sql.validate": {"mean": 0.1},
        "orm.validate": {"mean": 0.09},
        "policy.enforce": {"mean": 0.001},
    },
}
NULL = {CACHE_BACKEND: "dogpile.cache.null"}

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,"
    'sentBytes,grpThreads,allThreads,Latency,Connect,"server_timing"\n'
)
TIMING = (
    "total;dur=200, sql_statements;desc=61, cache_calls;desc=0, sql.validate;dur=100, "
    "orm.validate;dur=99, policy.enforce;dur=1"
)


def run_command(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(diagnose.command, [f"--run={folder}", *more])


def write(folder: Path, *calls: object, environment: object = None) -> Path:
    run = {"name": "cache-off", "calls": calls, "environment": environment or NULL}
    (folder / "breakdown.json").write_text(json.dumps({"runs": [run]}))
    return folder


def test_run_without_a_cache(tmp_path: Path) -> None:
    result = run_command(write(tmp_path, CALL), "--output=json")

    (finding,) = json.loads(result.stdout)["runs"]["cache-off"]["findings"]
    assert result.exit_code == diagnose.FINDINGS
    assert finding["id"] == "C1"
    assert finding["fix"][0]["line"] == "[cache] backend = oslo_cache.memcache_pool"
    low, mid, high = finding["predicted_gain_seconds_per_call"]
    assert 0 < low < mid < high < CALL["wall_seconds"]["mean"] * 1.2


def test_table_has_cause_cost_evidence_fix_and_risk(tmp_path: Path) -> None:
    text = run_command(write(tmp_path, CALL)).output

    assert "1. Keystone does not cache" in text
    assert "SQL statements of GET" in text
    assert "expected 0 statements" in text
    assert "Change keystone.conf: [cache] backend = oslo_cache.memcache_pool" in text
    assert "Risk: " in text
    assert "Not judged:" in text


def test_quantiles_of_a_run(tmp_path: Path) -> None:
    wall = {"mean": 0.2, "p50": 0.15, "p95": 0.4, "p99": 0.9}

    result = run_command(
        write(tmp_path, {**CALL, "wall_seconds": wall}), "--output=json"
    )

    (calls,) = json.loads(result.stdout)["runs"]["cache-off"]["window"]["calls"]
    assert calls["p50_seconds"] == pytest.approx(0.15)
    assert calls["p95_seconds"] == pytest.approx(0.4)


def test_healthy_run(tmp_path: Path) -> None:
    warm = {**CALL, "cells": {"cache.validate": {"mean": 0.004}}}
    warm |= {"sql_statements": {"mean": 0.0}, "cache_calls": {"mean": 14.0}}
    pooled = {CACHE_BACKEND: "oslo_cache.memcache_pool"}

    result = run_command(write(tmp_path, warm, environment=pooled))

    assert result.exit_code == 0
    assert "No cause found" in result.output


@pytest.mark.parametrize("text", ["", "{}", '{"runs": [{}]}', "[]", "\x00"])
def test_broken_file_is_wrong_usage(tmp_path: Path, text: str) -> None:
    (tmp_path / "breakdown.json").write_text(text)

    result = run_command(tmp_path)

    assert "is no breakdown of a load" in str(result.exception)


def test_explanation_of_a_cause() -> None:
    text = CliRunner().invoke(diagnose.command, ["--explain=cache-far"]).output

    assert text.startswith("## C4 cache-far")


def test_unknown_cause_suggests_a_known_one() -> None:
    result = CliRunner().invoke(diagnose.command, ["--explain=cache-fat"])

    assert "Did you mean `cache-far`?" in str(result.exception)


@pytest.mark.parametrize(
    "words",
    [
        ["--from=1h", "--to=2h"],
        ["--listen=9730"],
        ["--match=cluster"],
        ["--match=a b=c"],
    ],
)
def test_wrong_options_are_refused(words: list[str]) -> None:
    words = ["--prometheus=http://127.0.0.1:9", *words]

    assert CliRunner().invoke(diagnose.command, words).exit_code == 2


def test_load_that_still_sends_is_judged_by_its_samples(tmp_path: Path) -> None:
    label = "GET /v3/auth/tokens"
    lines = [
        f'{1700000000000 + 200 * n},201,{label},200,OK,t,true,9,9,1,1,200,0,"{TIMING}"'
        for n in range(20)
    ]
    half = lines[0][:30]
    (tmp_path / "samples.jtl").write_text(HEADER + "\n".join([*lines, half]))

    result = run_command(tmp_path, "--output=json")

    (run,) = json.loads(result.stdout)["runs"].values()
    (calls,) = run["window"]["calls"]
    assert calls["mean_seconds"] == pytest.approx(0.2)
    assert [one["id"] for one in run["findings"]] == ["C1"]
    assert {"C7", "D1"} <= {one["id"] for one in run["unknown"]}


def test_load_without_a_sample_says_so(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text("")

    assert "has just begun" in str(run_command(tmp_path).exception)


def timed_executor(cells: Mapping[str, str]) -> FakeExecutor:
    """Return an executor of arms with these cells, which also refuses some calls."""

    def timed(this_round: Round, arm: str) -> ArmResult:
        rows = fake_rows(this_round, arm)
        served = [replace(row, cells_text=cells.get(arm, "")) for row in rows]
        quick = replace(rows[-1], code="401", cells_text="other.other=0.001")
        return ArmResult([*served, quick])

    return FakeExecutor(override=timed)


def test_each_arm_of_an_experiment_is_judged(make_run: MakeRun) -> None:
    """Arm c spends its time as a Keystone without a cache does."""
    slow = "sql.validate=0.1 orm.validate=0.09 policy.enforce=0.001"
    cells = {"a": "cache.validate=0.004 policy.enforce=0.001", "c": slow}
    run = make_run("r", timed_executor(cells))
    run.execute()

    runs = json.loads(run_command(run.folder.path, "--output=json").stdout)["runs"]
    assert [*runs] == ["a", "c"]
    (calls,) = runs["a"]["window"]["calls"]
    assert calls["mean_seconds"] == pytest.approx(0.005)
    (calls,) = runs["c"]["window"]["calls"]
    assert calls["mean_seconds"] == pytest.approx(0.191)


def test_arm_inherits_the_cache_of_the_base(make_run: MakeRun) -> None:
    slow = "sql.validate=0.1 orm.validate=0.09 policy.enforce=0.001"
    executor = timed_executor(dict.fromkeys("abc", slow))
    plan = make_run("r", executor).folder.path / "plan.toml"
    text = plan.read_text().replace("[arms.a]", '[arms.a]\ncache = "null"')
    plan.write_text(text)
    run = make_run("r", executor)
    run.execute()

    runs = json.loads(run_command(run.folder.path, "--output=json").stdout)["runs"]
    found = {name: [x["id"] for x in one["findings"]] for name, one in runs.items()}
    assert found == {name: ["C1"] for name in "abc"}


def test_experiment_without_a_round_says_so(make_run: MakeRun) -> None:
    run = make_run("r", FakeExecutor())

    assert "no round has ended" in str(run_command(run.folder.path).exception)


def test_load_without_a_measured_call_leaves_all_unknown(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(HEADER)

    result = run_command(tmp_path)

    assert result.exit_code == diagnose.CANNOT_SAY
    assert "no token call" in result.output


def test_experiment_without_breakdowns_says_so(make_run: MakeRun) -> None:
    run = make_run("r", FakeExecutor())
    run.execute()

    assert "no breakdown of a call" in str(run_command(run.folder.path).exception)


@pytest.mark.parametrize(
    ("stuck", "code"), [(True, diagnose.FINDINGS), (False, diagnose.CANNOT_SAY)]
)
def test_window_without_a_call_may_have_a_cause(
    monkeypatch: pytest.MonkeyPatch, *, stuck: bool, code: int
) -> None:
    """While all workers hang in a cache without a time-out, no call ends."""
    facts = CASES["C3"]() if stuck else make_facts()
    diagnosis = judge(replace(facts, calls=[]))
    monkeypatch.setattr(diagnose.Metrics, "judge", lambda *_: diagnosis)

    words = ["--prometheus=http://127.0.0.1:9", "--output=json"]
    result = CliRunner().invoke(diagnose.command, words)

    assert result.exit_code == code
    found = [one["id"] for one in json.loads(result.stdout)["findings"]]
    assert found == ["C3"] * stuck
    assert json.loads(result.stdout)["healthy"] is False
