"""`keylag load`: targets, settings, users and failed requests."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_keystone import password_of, running

from keylag import failed_requests, load_plans, load_target
from keylag.breakdown import Run, compute_breakdown, name_run
from keylag.cli import main
from keylag.commands.load import parse_settings
from keylag.jmeter import LoadResult
from keylag.jtl import Sample
from keylag.load_runner import build_load

HEADER = "username,password,user_domain,project,project_domain"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A valid CSV file of users."""
    path = tmp_path / "users.csv"
    path.write_text(f"{HEADER}\nalice,secret,Default,demo,Default\n")
    return path


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://k:5000/v3", ("http", "k", "5000", "")),
        (
            "https://cloud.example/identity/v3/",
            ("https", "cloud.example", "443", "/identity"),
        ),
        ("http://[::1]:35357", ("http", "::1", "35357", "")),
    ],
)
def test_url_is_split_into_properties(url: str, expected: tuple[str, ...]) -> None:
    assert tuple(load_target.split_url(url).values()) == expected


@pytest.mark.parametrize("url", ["keystone:5000", "ftp://k/v3", "http://k:no/", ""])
def test_invalid_url_is_rejected_with_an_example(url: str) -> None:
    with pytest.raises(load_target.TargetError, match="http://host:5000/v3"):
        load_target.split_url(url)


def test_openrc_variables_set_the_service_user(users: Path) -> None:
    env = {"OS_USERNAME": "svc", "OS_PASSWORD": "canary", "OS_PROJECT_NAME": "service"}
    where = load_target.from_url("http://k:5000", users, env)

    assert where.secrets == {"service_password": "canary"}
    assert where.properties["service_username"] == "svc"
    assert "canary" not in repr(where)


def test_load_has_only_properties_of_its_plan(users: Path) -> None:
    env = {"OS_USERNAME": "svc", "OS_PASSWORD": "canary"}
    where = load_target.from_url("http://k:5000", users, env)
    load = build_load(load_plans.find_plan("token-issue"), where, {"threads": "3"})

    assert load.secrets == {}
    assert "service_username" not in load.properties
    assert (load.properties["port"], load.properties["threads"]) == ("5000", "3")


def test_setting_values_may_contain_equals_signs() -> None:
    assert parse_settings(("query=?a=b", "seed=")) == {"query": "?a=b", "seed": ""}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["token-isue"], "token-issue, token-mixed, token-validate"),
        (["token-issue", "--set", "thread=1"], "Its properties: "),
        (["token-isue"], "Did you mean `token-issue`?"),
        (["token-issue", "--set", "threads=x"], "threads: x is not a whole number"),
        (["token-issue", "--set", "users_file=x"], "with --users FILE"),
        (["token-issue", "--set", "threads"], "does not have the form NAME=VALUE"),
        (["token-validate", "--set", "service_password=x"], "OS_PASSWORD"),
        (["token-issue", "--url", "http://k:5000"], "needs --users"),
        (
            ["token-issue", "--url", "http://k:5000", "--users", "none.csv"],
            "none.csv does not exist",
        ),
    ],
)
def test_invalid_arguments_are_rejected_with_advice(
    arguments: list[str], words: str
) -> None:
    result = CliRunner().invoke(main, ["load", *arguments])

    assert result.exit_code != 0
    assert words in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 is empty"),
        (f"{HEADER}\n", "it has no users below the header"),
        ("name,password\na,b\n", "line 1 lacks the columns username, user_domain, "),
        (f"{HEADER}\na,b,c,d\n", "line 2 has 4 values instead of 5"),
        (f"{HEADER}\na,b,c,d,e\na,,c,d,e\n", "line 3, column password, is empty"),
        (f"{HEADER}\na,b,c,d,e\n\n", "line 3 has 0 values instead of 5"),
    ],
)
def test_invalid_users_file_is_rejected_with_line_and_column(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "users.csv"
    path.write_text(text)

    with pytest.raises(load_target.TargetError) as refused:
        load_target.from_url("http://k:5000", path, {})
    assert words in str(refused.value)
    assert HEADER in str(refused.value)


def test_users_file_accepts_any_column_order_and_extras(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    columns = HEADER.split(",")[::-1]
    path.write_text(f"note,{','.join(columns)}\n,e,d,c,b,a\n")

    assert load_target.from_url("http://k:5000", path, {}).properties["users_file"]


def run(good: int, failed: int, code: str = "500", message: str = "Oh, no") -> Run:
    """Return a run with this number of successful and failed requests."""
    one = ("POST /v3/auth/tokens password", "201", "Created")
    other = ("GET /v3/auth/tokens", code, message)
    samples = [
        Sample(
            0, 0.1, 0.1, 0, *words, "t", success=words is one, size_bytes=1, timing=None
        )
        for words, number in ((one, good), (other, failed))
        for _ in range(number)
    ]
    return name_run("r", compute_breakdown(samples))


def test_failures_up_to_the_limit_pass() -> None:
    failed_requests.check_failed_share([run(95, 5)], 0.05)
    failed_requests.check_failed_share([run(0, 0)], 0)
    with pytest.raises(
        failed_requests.TooManyFailedRequestsError, match=r"6 of 100 .* \(6 %\)"
    ):
        failed_requests.check_failed_share([run(94, 6)], 0.05)


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        ("Non HTTP response code: X", "Connection refused", "Nothing listens there"),
        ("Non HTTP response code: X", "Read timed out", "did not respond in time"),
        ("Non HTTP response code: NoHttpResponseException", "", "keep_alive=false"),
        ("401", "UNAUTHORIZED", "a token has expired"),
        ("404", "NOT FOUND", "the token has expired"),
        ("503", "Service Unavailable", "server's log"),
        ("418", "I'm a teapot", "100 GET /v3/auth/tokens: 418 I'm a teapot."),
    ],
)
def test_failures_are_explained_with_advice(
    code: str, message: str, words: str
) -> None:
    with pytest.raises(failed_requests.TooManyFailedRequestsError) as refused:
        failed_requests.check_failed_share([run(0, 100, code, message)], 0.05)
    assert "100 of 100 requests failed (100 %)" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["-1%", "101%", "five", "", "5 %%"])
def test_invalid_max_errors_is_rejected_with_an_example(text: str) -> None:
    result = CliRunner().invoke(main, ["load", "token-issue", "--max-errors", text])

    assert result.exit_code == 2
    assert "such as 5%" in result.output


def test_service_plan_needs_a_service() -> None:
    where = load_target.LoadTarget(
        {}, missing={"target_port": load_target.NO_SERVICE_MESSAGE}
    )

    with pytest.raises(load_target.TargetError, match="keylag up --with service"):
        build_load(load_plans.find_plan("service-call"), where, {})
    assert build_load(
        load_plans.find_plan("service-call"), where, {"target_port": "80"}
    )
    assert build_load(load_plans.find_plan("token-issue"), where, {})


def test_ctrl_c_before_the_first_sample_exits_with_130(
    users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = LoadResult(tmp_path / "none", tmp_path / "none", interrupted=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("keylag.commands.load.send_load", lambda *_, **__: nothing)
    arguments = ["token-issue", "--url", "http://k:5000", "--users", str(users)]
    result = CliRunner().invoke(main, ["load", *arguments])

    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")
    assert list((tmp_path / "out" / "load" / "token-issue").iterdir()) == []


@pytest.mark.stack
def test_results_of_a_failed_load_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f'user{n},"{password_of(f"user{n}").replace(chr(34), chr(34) * 2)}",D,d,D'
        for n in range(3)
    ]
    (tmp_path / "users.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    settings = {"target_port": "9", "threads": "2", "loops": "2", "ramp_seconds": "0"}
    words = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
    with running() as keystone:
        arguments = ["service-call", "--url", keystone.url, "--users", "users.csv"]
        result = CliRunner().invoke(main, ["load", *arguments, *words])

    assert result.exit_code == 1, result.output
    assert "4 of 4 requests failed (100 %)" in result.output
    assert "Nothing listens there" in result.output
    assert "No call was measured" in result.output
    latest = tmp_path / "out" / "load" / "service-call" / "latest"
    assert {"breakdown.json", "report.html", "samples.jtl"} <= {
        path.name for path in latest.iterdir()
    }
