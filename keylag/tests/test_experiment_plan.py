"""Plans: mistakes are reported with their line, and settings configure the stack."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag.cli import main
from keylag.errors import WrongUsageError
from keylag.experiment import option_checks, plan_parser
from keylag.experiment.plan import with_variables
from keylag.experiment.run_folder import RunFolder, RunState
from keylag.experiment.schedule import Round
from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import (
    initial_data_for,
    round_environment,
    services_for,
    stack_options,
)
from keylag.experiment.toml_positions import line_of
from keylag.paths import CHECKOUT

VALID_PLAN = """\
question = "Which?"
base = "plain"

[load]
plan = "token-issue"
properties = { threads = 2 }

[design]
minutes = 10

[decision]
method = "POST"

[arms.plain]
processes = 4
keystone.identity.password_hash_rounds = 10

[arms.other]
cache = "redis"
keystone.token.allow_expired_window = 0
"""


def write_plan(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_arm_inherits_settings_of_the_base(tmp_path: Path) -> None:
    found = plan_parser.read_plan(write_plan(tmp_path, VALID_PLAN))
    arm = found.resolved_arm("other")

    assert found.arm_names == ["plain", "other"]
    assert (arm.cache, arm.processes) == ("redis", 4)
    assert arm.keystone == {
        "identity": {"password_hash_rounds": 10},
        "token": {"allow_expired_window": 0},
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('base = "plain"', 'base = "plan"', ":2: base: no such arm"),
        ('"token-issue"', '"token-isue"', ":5: load.plan: There is no load plan"),
        ("threads = 2", "thread = 2", ":6: load.properties.thread: token-issue takes"),
        ("threads = 2", "thread = 2", "Did you mean `threads`?"),
        ("threads = 2", 'threads = "x"', ":6: load.properties.threads: x is not a"),
        ("threads = 2", "threads = 2.5", ":6: load.properties.threads: 2.5 is not a"),
        ("threads = 2", "keep_alive = 1", ":6: load.properties.keep_alive: 1 is not"),
        ("minutes = 10", "minuets = 10", "Did you mean `minutes`?"),
        ("minutes = 10", "blocks = 10", ":9: design.blocks: Extra inputs"),
        ("minutes = 10", "blocks = 10", "Did you mean `rounds`?"),
        ('cache = "redis"', 'chace = "redis"', "Did you mean `cache`?"),
        ("base =", "bases =", "Did you mean `base`?"),
        ("processes = 4", "optional = true", "optional: every other arm is compared"),
        ("threads = 2", "arrivals = 9", ":6: load.properties.arrivals: reserved"),
        ("base =", "elsewhere = {}\nbase =", ":2: elsewhere: Extra inputs"),
        ("base =", "elsewhere = {}\nbase =", "Did you mean `remote`?"),
        (
            'cache = "redis"',
            "properties = { threads = 0 }",
            ":19: arms.other.properties.threads: 0 is not a whole number",
        ),
        ("threads = 2", "loops = 2", ":6: load.properties.loops: reserved"),
        (
            "minutes = 10",
            "minutes = 0.1",
            ":9: design.minutes: too short: a verdict needs 5 rounds",
        ),
        ("minutes = 10", "slice_seconds = 0.01", ":9: design.slice_seconds: Input"),
        (
            "minutes = 10",
            "turn_seconds = 2.6",
            ":9: design.turn_seconds: must be a mul",
        ),
        ("minutes = 10", 'minutes = "10"', ":9: design.minutes: Input should be"),
        (
            "minutes = 10",
            'turn_seconds = "10s"',
            ":9: design.turn_seconds: Input should be a valid number, without quotes",
        ),
        ("minutes = 10", "minuets = 10", ":9: design.minuets: Extra inputs"),
        ('"token-issue"', '"service-call"', ":5: load.plan: this load calls a service"),
        ('"POST"', '"GET"', ":12: decision.method: token-issue sends no GET"),
        ('method = "POST"', "", ":11: decision.method: Field required"),
        (
            'method = "POST"',
            'method = "POST"\ncontrol = "hash"',
            ":13: decision.control: choose one of sql, cache",
        ),
        (
            'method = "POST"',
            'method = "POST"\nmeasure = "slq"',
            ":13: decision.measure: choose one of p50, p95",
        ),
        (
            'method = "POST"',
            'method = "POST"\nmeasure = "orm"\ncontrol = "orm"',
            ":14: decision.control: no arm changes it, so the plan cannot decide",
        ),
        ("processes = 4", "processes = 0", ":15: arms.plain.processes: Input should"),
        ('"redis"', '"rediss"', ":19: arms.other.cache: choose one of null"),
        ("[arms.other]", "[arms.other", "line 18"),
        ("[arms.other]", '[arms."../x"]', ":18: arms.../x.[key]: String should"),
        (
            "token.allow_expired_window",
            "cache.backend",
            ":20: arms.other.keystone.cache.backend: the stack sets this",
        ),
        (
            'cache = "redis"',
            'release = "26"',
            ":19: arms.other.release: choose one of 2026.1",
        ),
        ('cache = "redis"', "query_cache = {x = 1}", "query_cache: needs `proxysql"),
        (
            '"redis"',
            '"null"\nhung_cache = true',
            ":20: arms.other.hung_cache: needs a cache",
        ),
        ('cache = "redis"', 'switch = "true"', ":19: arms.other.switch: only for"),
        (
            'cache = "redis"',
            "properties = { loops = 2 }",
            ":19: arms.other.properties.loops: reserved",
        ),
    ],
)
def test_mistake_is_reported_with_its_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = write_plan(tmp_path, VALID_PLAN.replace(old, new, 1))

    with pytest.raises(plan_parser.PlanError) as raised:
        plan_parser.read_plan(path)
    assert message in str(raised.value)


def test_numbers_and_booleans_are_formatted_for_jmeter(tmp_path: Path) -> None:
    given = "threads = 2, keep_alive = false, rate_per_second = 2.5"
    found = plan_parser.read_plan(
        write_plan(tmp_path, VALID_PLAN.replace("threads = 2", given))
    )

    assert found.load_properties("other") == {
        "ramp_seconds": "0",
        "threads": "2",
        "keep_alive": "false",
        "rate_per_second": "2.5",
    }


def test_turn_may_be_a_multiple_of_an_inexact_slice(tmp_path: Path) -> None:
    """1.2 s are three slices of 0.4 s, although 1.2 / 0.4 is not exactly 3."""
    design = "turn_seconds = 1.2\nslice_seconds = 0.4\nminutes = 10"
    found = plan_parser.read_plan(
        write_plan(tmp_path, VALID_PLAN.replace("minutes = 10", design))
    )

    assert found.design.slice_ms == 400


REMOTE_PLAN = """\
question = "Which?"
base = "a"
remote = { url = "http://k:5000/v3", users = "users.csv" }
[load]
plan = "token-issue"
[decision]
method = "POST"
[arms.a]
switch = "make a"
[arms.b]
switch = "make b"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('switch = "make b"', "", ":10: arms.b: `switch` is missing, the command"),
        (
            'switch = "make b"',
            "processes = 2",
            ":11: arms.b.processes: only for stacks",
        ),
        ("http://k:5000/v3", "k:5000", ":3: remote.url: k:5000 is no URL"),
    ],
)
def test_remote_arm_needs_switch_and_takes_no_stack_settings(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(plan_parser.PlanError) as raised:
        plan_parser.read_plan(write_plan(tmp_path, REMOTE_PLAN.replace(old, new)))
    assert message in str(raised.value)


URLS_PLAN = """\
question = "Which?"
base = "a"
remote = { users = "users.csv" }
[load]
plan = "token-issue"
[decision]
method = "POST"
[arms.a]
url = "http://one:5000/v3"
[arms.b]
url = "http://two:5000/v3"
restart = "ssh two systemctl restart keystone"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('url = "http://two:5000/v3"', "", ":10: arms.b: `url` is missing"),
        ("http://two:5000/v3", "two:5000", ":11: arms.b.url: two:5000 is no URL"),
        ("restart =", "switch =", ":12: arms.b.switch: only with `url` in [remote]"),
        ("restart =", "cache =", ":12: arms.b.cache: only for stacks"),
        ("{ users", '{ url = "http://k/v3", users', ":9: arms.a.url: not with `url`"),
        ("remote = { users", "# { users", ":12: arms.b.restart: only for a remote"),
    ],
)
def test_arms_at_urls_have_a_url_each_and_no_switch(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(plan_parser.PlanError) as raised:
        plan_parser.read_plan(write_plan(tmp_path, URLS_PLAN.replace(old, new)))
    assert message in str(raised.value)


def test_arms_at_urls_share_a_round_and_inherit_no_command(tmp_path: Path) -> None:
    text = URLS_PLAN.replace('base = "a"', 'base = "b"')
    found = plan_parser.read_plan(write_plan(tmp_path, text))
    switched = plan_parser.read_plan(write_plan(tmp_path, REMOTE_PLAN))
    design = found.design

    assert found.resolved_arm("a").restart == ""
    assert found.round_load_seconds == design.warm_up_seconds + 2 * design.turn_seconds
    assert switched.round_load_seconds == 2 * design.load_seconds(1)


def test_address_of_a_remote_keystone_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_AUTH_URL", "http://k:5000/v3")
    text = REMOTE_PLAN.replace("http://k:5000/v3", "$OS_AUTH_URL")

    plan = plan_parser.read_plan(write_plan(tmp_path, text))

    assert plan.keystone_url("a") == plan.keystone_url("b") == "http://k:5000/v3"


def test_plan_is_read_without_the_variables_that_only_a_run_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OS_AUTH_URL", "A_URL"):
        monkeypatch.delenv(name, raising=False)
    switched = REMOTE_PLAN.replace("http://k:5000/v3", "$OS_AUTH_URL")
    at_urls = URLS_PLAN.replace("http://one:5000/v3", "$A_URL")

    for text, variable in ((switched, "OS_AUTH_URL"), (at_urls, "A_URL")):
        plan = plan_parser.read_plan(write_plan(tmp_path, text))
        with pytest.raises(WrongUsageError, match=f"{variable} is not set"):
            plan.keystone_url("a")


def test_settings_have_the_values_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE", "a$b")
    monkeypatch.setenv("NOTHING", "")
    monkeypatch.delenv("MORE", raising=False)

    assert with_variables("/data/$SITE/${SITE}.csv") == "/data/a$b/a$b.csv"
    assert with_variables("/data/5$/u$-s.csv") == "/data/5$/u$-s.csv"
    with pytest.raises(WrongUsageError, match="NOTHING, MORE is not set"):
        with_variables("${NOTHING}/$SITE/$MORE")


def test_single_arm_is_valid_for_remote_keystone_only(tmp_path: Path) -> None:
    alone = REMOTE_PLAN[: REMOTE_PLAN.index("[arms.b]")].replace(
        'switch = "make a"', ""
    )
    stack_plan = VALID_PLAN[: VALID_PLAN.index("[arms.other]")]

    assert plan_parser.read_plan(write_plan(tmp_path, alone)).arm_names == ["a"]
    with pytest.raises(plan_parser.PlanError, match="an experiment needs two arms"):
        plan_parser.read_plan(write_plan(tmp_path, stack_plan))


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = VALID_PLAN.replace("processes = 4", "processes = 0").replace(
        "10\n", '"x"\n', 1
    )

    with pytest.raises(plan_parser.PlanError, match=r"(?s):9: .*:15: "):
        plan_parser.read_plan(write_plan(tmp_path, text))


def test_missing_plan_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(plan_parser.PlanError, match=r"nothing\.toml"):
        plan_parser.read_plan(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("place", "line"),
    [(("a",), 1), (("b", "c"), 3), (("b", "missing"), 2), (("x y", "d"), 5), ((), 1)],
)
def test_line_of_missing_key_is_that_of_its_table(
    place: tuple[str, ...], line: int
) -> None:
    text = 'a = 1\n[b]\nc = [\n 2,\n]\n["x y"]\nd = 3\n'.replace("\n]\n", "]\n")

    assert line_of(text, place) == line + (place[:1] == ("x y",))


def test_plans_of_the_repository_are_valid() -> None:
    folder = CHECKOUT / "experiments"
    found = {path.stem: plan_parser.read_plan(path) for path in folder.glob("*.toml")}

    assert len(found) >= 5
    assert all(one.question.endswith("?") for one in found.values())


def test_plans_are_listed_without_what_they_need_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OS_AUTH_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["experiment", "list"])

    assert result.exit_code == 0, result.output
    for path in (CHECKOUT / "experiments").glob("*.toml"):
        assert f"{path.stem}: " in result.output


@pytest.mark.parametrize("text", ["question = 1", "", "question ="])
def test_plan_without_a_question_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(plan_parser.PlanError, match=r"plan\.toml"):
        plan_parser.read_question(write_plan(tmp_path, text))


def test_optional_arm_is_left_out_without_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = VALID_PLAN + "[arms.proxied]\nproxysql = true\noptional = true\n"
    path = write_plan(tmp_path, text)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = option_checks.missing_arms(plan_parser.read_plan(path))
    folder = RunFolder(tmp_path / "run")
    folder.create(path, RunState(seed=1, arms=["plain", "other"]))

    assert found.keys() == {"proxied"}
    assert "proxysql is not installed" in found["proxied"]
    assert folder.load_plan().arm_names == ["plain", "other"]


def test_settings_become_variables_and_select_the_initial_data(tmp_path: Path) -> None:
    found = plan_parser.read_plan(write_plan(tmp_path, VALID_PLAN))
    plain, default = found.resolved_arm("plain"), Arm()
    options = stack_options(
        plain, round_environment("plain", Round(0, ["plain"], 7), None)
    )

    expected = {"OS_IDENTITY__PASSWORD_HASH_ROUNDS": "10", "PYTHONHASHSEED": "7"}
    assert expected.items() <= options.environment.items()
    assert options.mariadb == {"slow_query_log": "0"}
    assert initial_data_for(plain).key != initial_data_for(default).key
    assert initial_data_for(default).key == initial_data_for(Arm(cache="null")).key
    assert initial_data_for(Arm(more_services=1)).key != initial_data_for(default).key


def test_metrics_have_run_and_round_when_otlp_is_set() -> None:
    this_round = Round(4, ["b", "a"], 7)

    assert round_environment("a", this_round, None) == {"PYTHONHASHSEED": "7"}
    sent = round_environment("a", this_round, "http://c:4318")
    assert sent["OTEL_RESOURCE_ATTRIBUTES"] == "keylag.run=a,keylag.round=4"
    assert sent["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://c:4318"


def test_arm_has_no_exporter_collector_or_prometheus() -> None:
    """They would use processor time of what is measured."""
    names = [service.name for service in services_for(Arm())]

    assert names == ["mariadb", "memcached", "keystone"]


def test_services_of_an_arm_follow_its_settings_in_start_order() -> None:
    arm = Arm(cache="redis", proxysql=True, query_cache={"FROM x": 5})
    names = [service.name for service in services_for(arm)]

    assert names == ["mariadb", "memcached", "redis", "proxysql", "keystone"]
    assert stack_options(arm, {}).query_cache == {"FROM x": 5}
