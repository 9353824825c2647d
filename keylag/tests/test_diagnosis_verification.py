"""Prediction against measurement: the experiment of a finding, and its verdict."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from diagnosed import LOGIN, VALIDATION, healthy_calls, judge, make_facts
from fake_experiment import ENVIRONMENT, fake_rows

from keylag.commands import diagnose
from keylag.diagnosis import verification
from keylag.diagnosis.experiment_plan import (
    AS_IS,
    FIXED,
    NotVerifiableError,
    count_clients,
    write_plan,
)
from keylag.diagnosis.facts import REFUSED, Facts
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.ranking import Diagnosis, Reason
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import Saving
from keylag.diagnosis.verification import Check
from keylag.errors import KeylagError, WrongUsageError
from keylag.experiment.interval import Interval
from keylag.experiment.plan_parser import read_plan
from keylag.experiment.run import ArmResult
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round
from keylag.faults.journal import Journal
from keylag.faults.registry import FAULTS
from keylag.launcher import StackError
from keylag.sample_cloud import users_file
from keylag.services.base import StackOptions
from keylag.stack_info import StackInfo
from keylag.stack_record import StackRecord

PREDICTED = Saving(0.010, 0.020, 0.024)
OPTIONS = StackOptions(cache="redis", processes=3)


def no_cache() -> Facts:
    """A Keystone without cache: C1, which explains what else looks slow."""
    slow = {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}
    return make_facts(
        healthy_calls(VALIDATION, slow, statements=49.0),
        cache_backends=[Sample({"keystone_cache_backend": "dogpile.cache.null"}, 4.0)],
    )


def evicting() -> Facts:
    slow = {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}
    calls = healthy_calls(VALIDATION, slow, statements=49.0)
    missed = {"keystone_cache_region": "role", "keystone_cache_result": "miss"}
    return make_facts(calls, memcached_evictions=50.0, memoized=[Sample(missed, 100.0)])


@pytest.fixture
def stack(tmp_path: Path) -> StackInfo:
    """The folder of a stack that was started with OPTIONS."""
    folder = tmp_path / "stack"
    folder.mkdir()
    ports = {"keystone": 5000, "service": 5001}
    StackRecord(ports, OPTIONS, ("keystone",)).save(folder)
    found = StackInfo(folder)
    users_file(found).parent.mkdir()
    users_file(found).touch()
    return found


def read(text: str, folder: Path) -> Any:
    """Return a plan as `keylag experiment run` reads it."""
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_arms_are_the_options_of_now_and_those_of_the_rule(stack: StackInfo) -> None:
    facts = no_cache()
    (finding,) = judge(facts).findings

    plan = read(write_plan(finding, facts, stack), stack.folder)

    assert plan.base == AS_IS
    usual = "--processes=3 --threads=1 "
    assert f" up --cache=redis {usual}" in plan.arms[AS_IS].switch
    assert f" up --cache=memcache_pool {usual}" in plan.arms[FIXED].switch
    assert plan.remote.url == "http://127.0.0.1:5000/v3"
    assert (plan.load.plan, plan.decision.method) == ("token-mixed", "GET")


def test_planted_fault_is_taken_back_and_planted_with_its_strength(
    stack: StackInfo,
) -> None:
    Journal(stack.folder).begin(FAULTS["D1"], 7.0, 0.0)
    Journal(stack.folder).begin(FAULTS["C5"], 123.5, 0.0)
    facts = evicting()
    (finding,) = judge(facts).findings

    plan = read(write_plan(finding, facts, stack), stack.folder)

    assert " fault stop C5 " in plan.arms[FIXED].switch
    stop, start = plan.arms[AS_IS].switch.split(" && ")
    assert stop == plan.arms[FIXED].switch
    assert " fault start C5 --strength=123.5 --no-check " in start


def test_path_with_quotes_stays_one_word(stack: StackInfo, tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" c'
    stack.folder.rename(odd)
    facts = no_cache()
    (finding,) = judge(facts).findings

    plan = read(write_plan(finding, facts, StackInfo(odd)), odd)

    assert plan.remote.users == str(users_file(StackInfo(odd)))
    assert f"'--state={odd}'" in plan.arms[AS_IS].switch


def test_cause_without_fault_and_option_cannot_be_verified(stack: StackInfo) -> None:
    facts = evicting()
    (finding,) = judge(facts).findings

    with pytest.raises(NotVerifiableError, match="no such fault is planted"):
        write_plan(finding, facts, stack)


def test_options_do_not_take_back_another_fault(stack: StackInfo) -> None:
    Journal(stack.folder).begin(FAULTS["D1"], 7.0, 0.0)
    facts = no_cache()
    (finding,) = judge(facts).findings

    with pytest.raises(NotVerifiableError, match="would take back D1"):
        write_plan(finding, facts, stack)


def test_cause_that_costs_only_workers_cannot_be_verified(stack: StackInfo) -> None:
    Journal(stack.folder).begin(FAULTS["C5"], 2000.0, 0.0)
    facts = evicting()
    (finding,) = judge(facts).findings
    of_workers = replace(finding, suspicion=replace(finding.suspicion, savings={}))

    with pytest.raises(NotVerifiableError, match="predicts no saving"):
        write_plan(of_workers, facts, stack)


@pytest.mark.parametrize(
    "rule", [one for one in RULES.values() if one.fixed_options], ids=lambda one: one.id
)
def test_options_of_rules_are_those_of_keylag_up(rule: Any) -> None:
    usual = replace(OPTIONS, threads=2)

    fixed = rule.fixed_options(usual)

    assert fixed != usual
    up = {name: getattr(usual, name) for name in ("cache", "processes", "threads")}
    assert replace(fixed, **up) == usual


def test_clients_keep_the_workers_as_busy_as_they_were() -> None:
    calls = [
        replace(healthy_calls(LOGIN), cells={("other", "other"): 0.5}, per_second=2.0),
        replace(healthy_calls(VALIDATION), cells={("sql", "other"): 0.1}, per_second=8),
        replace(healthy_calls(LOGIN), outcome=REFUSED, per_second=100.0),
    ]

    assert count_clients(make_facts(*calls, queue=0.1), "token-mixed") == 2
    assert count_clients(make_facts(*calls, queue=4.2), "token-mixed") == 6
    assert count_clients(make_facts(*calls, without=["uwsgi"]), "token-mixed") == 2


def test_a_window_with_few_calls_has_one_client() -> None:
    assert count_clients(make_facts(without=["uwsgi"]), "token-mixed") == 1


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (Interval(0.015, 0.016, 0.017), "agrees"),
        (Interval(0.001, 0.006, 0.011), "agrees"),
        (Interval(0.001, 0.006, 0.009), "does not agree"),
        (Interval(0.025, 0.030, 0.035), "does not agree"),
        (Interval(-0.002, 0.0, 0.002), "does not agree"),
        (Interval(-0.030, -0.020, -0.010), "does not agree"),
        (Interval(-0.001, 0.010, 0.021), "cannot tell"),
        (Interval(-inf, 0.010, inf), "cannot tell"),
        (None, "cannot tell"),
    ],
)
def test_verdict(measured: Interval | None, verdict: str) -> None:
    assert Check(VALIDATION, PREDICTED, measured, sound=True).verdict == verdict
    assert Check(VALIDATION, PREDICTED, measured, sound=False).verdict == "cannot tell"


@dataclass
class FakeStack:
    """An executor whose GETs take `milliseconds`, by arm; `override` may fail."""

    milliseconds: dict[str, int]
    override: Callable[[], None] = lambda: None
    stopped: list[bool] = field(default_factory=list)

    def start(self) -> None:
        """Do nothing."""

    def begin_round(self, this_round: Round) -> None:
        """Do nothing."""

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:  # noqa: ARG002
        self.override()
        rows = fake_rows(replace(this_round, arms=["a"]), "a")
        return {
            arm: ArmResult([self._of_arm(row, arm) for row in rows])
            for arm in this_round.arms
        }

    def _of_arm(self, row: Row, arm: str) -> Row:
        noise = row.round * ord(arm[0]) % 3
        seconds = (self.milliseconds[arm] + noise) / 1000
        return replace(row, arm=arm, latency_seconds=row.latency_seconds + seconds)

    def stop(self) -> None:
        self.stopped.append(True)


Verify = Callable[[FakeStack], verification.Verification]


@pytest.fixture
def verify(stack: StackInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """A function that verifies C1 with the calls of a fake stack."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(verification.option_checks, "check_plan", lambda *_: None)
    monkeypatch.setattr(verification.environment, "collect", lambda _: ENVIRONMENT)
    monkeypatch.setattr(verification.load_target, "from_stack", lambda _: None)

    def run(fake: FakeStack) -> verification.Verification:
        monkeypatch.setattr(verification, "SwitchedExecutor", lambda *_: fake)
        return verification.verify(judge(no_cache()), RULES["C1"], stack)

    return run


def predicted_seconds(diagnosis: Diagnosis) -> float:
    return diagnosis.findings[0].suspicion.savings[VALIDATION].mid


def test_saving_is_the_time_that_the_fixed_arm_is_shorter(verify: Verify) -> None:
    milliseconds = round(1000 * predicted_seconds(judge(no_cache())))

    found = verify(FakeStack({AS_IS: milliseconds, FIXED: 0}))

    (check,) = found.checks
    assert check.measured
    assert check.measured.mid == pytest.approx(milliseconds / 1000, abs=0.002)
    assert (found.verdict, found.result.rounds) == ("agrees", 6)


def test_arms_without_difference_contradict_the_prediction(verify: Verify) -> None:
    found = verify(FakeStack({AS_IS: 0, FIXED: 1}))

    assert found.verdict == "does not agree"


def test_document_has_the_finding_the_plan_and_both_intervals(verify: Verify) -> None:
    found = verify(FakeStack({AS_IS: 30, FIXED: 0}))
    document = json.loads(json.dumps(verification.as_json(found)))

    assert document["id"] == "C1"
    assert Path(document["experiment"]).read_text().startswith("# Written by")
    calls = document["verification"]["calls"]["GET"]
    assert calls["predicted_saving_seconds"][1] == predicted_seconds(found.diagnosis)
    low, mid, high = calls["measured_saving_seconds"]
    assert low < mid < high
    assert Path(document["experiment"]).with_name("report.html").exists()


def test_second_verification_has_a_folder_of_its_own(verify: Verify) -> None:
    first, second = (verify(FakeStack({AS_IS: 30, FIXED: 0})) for _ in range(2))

    assert first.folder != second.folder


def test_ctrl_c_restores_the_stack_and_ends_the_command(verify: Verify) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    fake = FakeStack({AS_IS: 30, FIXED: 0}, interrupt)
    with pytest.raises(KeyboardInterrupt):
        verify(fake)
    assert fake.stopped


def test_failed_switch_is_an_error(verify: Verify) -> None:
    def fail() -> None:
        message = "no such thing"
        raise StackError(message)

    with pytest.raises(KeylagError, match="an error stopped the run"):
        verify(FakeStack({AS_IS: 30, FIXED: 0}, fail))


def test_table_says_prediction_measurement_and_verdict(
    verify: Verify, capsys: pytest.CaptureFixture[str]
) -> None:
    found = verify(FakeStack({AS_IS: 30, FIXED: 0}))
    verification.render(found, verification.Console(width=120))

    text = capsys.readouterr().out
    assert "What a call saves without C1 cache-disabled" in text
    assert " ms to " in text
    assert found.checks[0].verdict in text
    assert str(found.folder) in text


@pytest.mark.parametrize(
    ("facts", "rule", "message"),
    [
        (no_cache, "D5", "D5 pool-exhausted is no finding .* Choose one of C1, or"),
        (make_facts, "C1", "C1 cache-disabled is no finding .* It has none: choose"),
    ],
)
def test_only_findings_are_verified(
    facts: Callable[[], Facts], rule: str, message: str
) -> None:
    with pytest.raises(WrongUsageError, match=message):
        verification.find_finding(judge(facts()), RULES[rule])


def test_symptom_names_its_cause() -> None:
    diagnosis = judge(no_cache())
    (finding,) = diagnosis.findings
    cause = replace(finding, explained=[Reason(RULES["C9"], "")])

    with pytest.raises(
        WrongUsageError, match="C9 is only a symptom of C1 cache-disabled"
    ):
        verification.find_finding(replace(diagnosis, findings=[cause]), RULES["C9"])


@pytest.mark.parametrize(
    "words",
    [
        ["--verify=C4", "--prometheus=http://127.0.0.1:9"],
        ["--verify=C4", "--listen=127.0.0.1:0"],
        ["--verify=C4", "--run=."],
    ],
)
def test_another_source_is_refused(words: list[str]) -> None:
    result = CliRunner().invoke(diagnose.command, words)

    assert result.exit_code == 2
    assert "--verify measures the stack" in result.output


def test_unknown_cause_is_refused() -> None:
    result = CliRunner().invoke(diagnose.command, ["--verify=C99"])

    assert "There is no cause C99" in str(result.exception)
