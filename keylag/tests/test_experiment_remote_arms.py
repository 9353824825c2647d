"""Experiments on Keystones that run already, one for each arm."""

import csv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import AddressFamily

import pytest
from click.testing import CliRunner
from fake_keystone import FakeKeystone, password_of, running
from rich.console import Console

from keylag import load_plans
from keylag.cli import main
from keylag.experiment import option_checks, plan_parser, report
from keylag.experiment.environment import keystone_addresses
from keylag.experiment.plan import Plan
from keylag.experiment.remote import RemoteArmsExecutor
from keylag.experiment.remote_access import check_access, same_servers
from keylag.experiment.run import ExperimentRun
from keylag.experiment.run_folder import RUNNING, RunFolder, RunState
from keylag.experiment.schedule import Round
from keylag.launcher import StackError
from keylag.load_target import LoadTarget
from keylag.users_csv import COLUMNS

PLAN = """\
question = "Which?"
base = "a"
[remote]
users = "{folder}/users.csv"
[load]
plan = "token-issue"
properties = {{ threads = 1, rate_per_second = 50 }}
[design]
warm_up_seconds = 0
turn_seconds = 1
[decision]
method = "POST"
[arms.a]
url = "{a}"
restart = "echo a >>{folder}/restarted"
[arms.b]
url = "{b}"
"""
PROXY_TIMING = "cdn-cache;desc=HIT, total;dur=3"
ENVIRONMENT = {"busy_before": 0.1, "arms": {}}

MakePlan = Callable[..., Plan]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A CSV file with one user, whom fake Keystones know."""
    path = tmp_path / "users.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(COLUMNS)
        rows.writerow(["someone", password_of("someone"), "D", "demo", "D"])
    return path


@pytest.fixture
def make_plan(users: Path, tmp_path: Path) -> MakePlan:
    """Return a function that writes a plan with URLs and replacements, and reads it."""

    def make(a: str, b: str, *changes: tuple[str, str]) -> Plan:
        text = PLAN.format(folder=tmp_path, a=a, b=b)
        for old, new in changes:
            text = text.replace(old, new)
        path = tmp_path / "plan.toml"
        path.write_text(text)
        return plan_parser.read_plan(path)

    return make


@pytest.fixture
def keystones() -> Iterator[list[FakeKeystone]]:
    """An instrumented Keystone, and one behind a proxy with a Server-Timing."""
    with ExitStack() as stack:
        timings = ({}, {"timing": PROXY_TIMING})
        yield [stack.enter_context(running(**timing)) for timing in timings]


def executor_of(plan: Plan, console: Console | None = None) -> RemoteArmsExecutor:
    assert plan.remote
    return RemoteArmsExecutor(plan, plan.remote, console or Console(quiet=True))


def test_arms_take_turns_in_slices_and_commands_restart_them(
    keystones: list[FakeKeystone], make_plan: MakePlan, tmp_path: Path
) -> None:
    plan = make_plan(*(one.url for one in keystones))
    executor = executor_of(plan)
    executor.start()
    for number in range(2):
        results = executor.run_round(Round(number, ["b", "a"], 1), tmp_path / "jmeter")
    executor.stop()

    rows = [row for one in results.values() for row in one.rows]
    turns = "".join(row.arm for row in sorted(rows, key=lambda row: row.start_seconds))
    assert (tmp_path / "restarted").read_text().split() == ["a", "a"]
    assert all(row.success for row in rows)
    assert turns.count("ab") + turns.count("ba") > 2
    assert [one.problems for one in results.values()] == [[], []]


def test_addresses_of_arms_and_users_come_from_the_environment(
    keystones: list[FakeKeystone], make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan("$A_URL", "$B_URL", ("{folder}/users.csv", "$USERS_CSV"))
    for name, one in zip("AB", keystones, strict=True):
        monkeypatch.setenv(f"{name}_URL", one.url)
    monkeypatch.setenv("USERS_CSV", "users.csv")

    executor_of(plan).start()

    assert all(one.users for one in keystones)


def test_run_is_not_resumed_at_other_addresses(
    keystones: list[FakeKeystone],
    make_plan: MakePlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan("$A_URL", "$B_URL")
    one, other = (keystone.url for keystone in keystones)
    monkeypatch.setenv("A_URL", one)
    monkeypatch.setenv("B_URL", other)
    environment = ENVIRONMENT | {"keystone": keystone_addresses(plan)}
    folder = RunFolder(tmp_path / "out")
    folder.create(tmp_path / "plan.toml", RunState(seed=1, environment=environment))
    monkeypatch.setenv("A_URL", other)
    monkeypatch.setenv("B_URL", one)

    refused = CliRunner().invoke(main, ["experiment", "resume", str(folder.path)])

    assert refused.exit_code == 2
    assert f"The run is of a {one}, b {other}" in refused.output
    assert folder.load_state().ended == RUNNING


def test_failed_restart_leaves_only_its_arm_out(
    keystones: list[FakeKeystone], make_plan: MakePlan, tmp_path: Path
) -> None:
    broken = ("echo a >>", "exit 3; cat ")
    executor = executor_of(make_plan(*(one.url for one in keystones), broken))
    results = executor.run_round(Round(0, ["b", "a"], 1), tmp_path / "jmeter")

    assert "exit status 3" in results["a"].problems[0]
    assert results["a"].rows == []
    assert results["b"].rows


def test_report_says_what_there_is_of_an_uninstrumented_arm(
    keystones: list[FakeKeystone],
    make_plan: MakePlan,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = make_plan(*(one.url for one in keystones))
    folder = RunFolder(tmp_path / "out")
    folder.create(tmp_path / "plan.toml", RunState(seed=1, environment=ENVIRONMENT))

    def stop_after_two(run: ExperimentRun) -> None:
        if run.state.rounds == 2:
            raise KeyboardInterrupt

    ExperimentRun(plan, folder, executor_of(plan, Console()), stop_after_two).execute()
    report.write_reports(folder)

    said = capsys.readouterr().out
    for name in ("report.md", "report.html"):
        text = (folder.path / name).read_text()
        assert "a: every response has the parts that Keylag measured" in text
        assert "b: latency at the client only." in text
        assert "The cost of Keylag in a is part of the difference" in text
        assert "No command restarts b before each round." in text
        assert "password hashing" not in text
        assert "waterfall" not in text
    assert "b sends no Server-Timing of Keylag" in said
    assert "a sends no" not in said


@pytest.mark.parametrize(
    ("url", "changes", "message"),
    [
        ("http://127.0.0.1:9", (), "127.0.0.1:9 does not answer: .*Start it, or"),
        (
            "{b}",
            (("token-issue", "token-validate"), ("POST", "GET")),
            "OS_PASSWORD is not set",
        ),
    ],
)
def test_arm_without_access_is_refused_before_the_run(  # noqa: PLR0913, PLR0917
    keystones: list[FakeKeystone],
    make_plan: MakePlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    changes: tuple[tuple[str, str], ...],
    message: str,
) -> None:
    monkeypatch.delenv("OS_PASSWORD", raising=False)
    monkeypatch.setattr(option_checks, "find_java_and_jar", lambda _home: None)
    a, b = (one.url for one in keystones)
    plan = make_plan(a, url.format(b=b), *changes)

    with pytest.raises(StackError, match=message):
        option_checks.check_plan(plan, tmp_path / "plan.toml")


def test_users_that_one_keystone_does_not_know_are_named(
    keystones: list[FakeKeystone], make_plan: MakePlan, users: Path, tmp_path: Path
) -> None:
    a, b = (one.url for one in keystones)
    plan = make_plan(a, b)
    with users.open("a") as rows:
        rows.write("stranger,wrong,D,demo,D\n")

    with pytest.raises(StackError, match=r"refuses the users of .*: stranger \(401\)"):
        option_checks.check_plan(plan, tmp_path / "plan.toml")


def test_two_names_of_one_server_are_refused_with_their_line(
    keystones: list[FakeKeystone], make_plan: MakePlan, tmp_path: Path
) -> None:
    (one, _) = keystones
    plan = make_plan(one.url, one.url.replace("127.0.0.1", "localhost") + "/v3")

    with pytest.raises(plan_parser.PlanError, match=r":17: arms.b.url: leads to the"):
        option_checks.check_plan(plan, tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("other", "mistakes"),
    [("http://two.example", 0), ("http://192.0.2.1", 1), ("http://one.example", 1)],
)
def test_two_names_of_an_address_may_be_two_keystones(
    monkeypatch: pytest.MonkeyPatch, other: str, mistakes: int
) -> None:
    found = [(AddressFamily.AF_INET, 1, 6, "", ("192.0.2.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    urls = {"a": "http://one.example", "b": other}

    assert len([*same_servers(urls)]) == mistakes


@pytest.mark.parametrize(
    ("status", "advice"), [(404, "is no Keystone"), (503, "fails")]
)
def test_wrong_path_and_broken_keystone_are_no_refused_users(
    keystones: list[FakeKeystone], users: Path, status: int, advice: str
) -> None:
    keystones[0].failure = status
    target = LoadTarget({"users_file": str(users)})

    with pytest.raises(StackError, match=advice):
        check_access(keystones[0].url, target, load_plans.find_plan("token-issue"))
