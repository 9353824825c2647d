"""`keylag load`: where it goes, and what it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_keystone import password_of, running

from keylag import failures, plans, target
from keylag.breakdown import Run, break_down, named
from keylag.cli import main
from keylag.commands.load import properties
from keylag.jmeter import Result
from keylag.jtl import Sample
from keylag.sending import load_of

HEADER = "username,password,user_domain,project,project_domain"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Give a file of users."""
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
def test_a_url_becomes_properties(url: str, expected: tuple[str, ...]) -> None:
    """With or without /v3, with or without a port."""
    assert tuple(target.address(url).values()) == expected


@pytest.mark.parametrize("url", ["keystone:5000", "ftp://k/v3", "http://k:no/", ""])
def test_what_is_no_url_is_refused(url: str) -> None:
    """The message shows what one looks like."""
    with pytest.raises(target.TargetError, match="http://host:5000/v3"):
        target.address(url)


def test_the_service_user_comes_from_openrc_variables(users: Path) -> None:
    """The password goes another way than the rest."""
    env = {"OS_USERNAME": "svc", "OS_PASSWORD": "canary", "OS_PROJECT_NAME": "service"}
    where = target.of_url("http://k:5000", users, env)

    assert where.secrets == {"service_password": "canary"}
    assert where.properties["service_username"] == "svc"
    assert "canary" not in repr(where)


def test_only_what_a_plan_takes_is_given_to_it(users: Path) -> None:
    """token-issue has no service user."""
    env = {"OS_USERNAME": "svc", "OS_PASSWORD": "canary"}
    where = target.of_url("http://k:5000", users, env)
    load = load_of(plans.find("token-issue"), where, {"threads": "3"})

    assert load.secrets == {}
    assert "service_username" not in load.properties
    assert (load.properties["port"], load.properties["threads"]) == ("5000", "3")


def test_settings_may_hold_an_equals_sign() -> None:
    """Only the first one divides."""
    assert properties(("query=?a=b", "seed=")) == {"query": "?a=b", "seed": ""}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["token-isue"], "token-issue, token-mixed, token-validate"),
        (["token-issue", "--set", "thread=1"], "It takes: "),
        (["token-isue"], "Did you mean `token-issue`?"),
        (["token-issue", "--set", "threads=x"], "threads: x is not a whole number"),
        (["token-issue", "--set", "users_file=x"], "by --users FILE"),
        (["token-issue", "--set", "threads"], "not of the form NAME=VALUE"),
        (["token-validate", "--set", "service_password=x"], "OS_PASSWORD"),
        (["token-issue", "--url", "http://k:5000"], "needs --users"),
        (
            ["token-issue", "--url", "http://k:5000", "--users", "none.csv"],
            "no file of",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_is_right(
    arguments: list[str], words: str
) -> None:
    """Before anything is started."""
    result = CliRunner().invoke(main, ["load", *arguments])

    assert result.exit_code != 0
    assert words in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 is empty"),
        (f"{HEADER}\n", "there is no user below the header"),
        ("name,password\na,b\n", "line 1 lacks the columns username, user_domain, "),
        (f"{HEADER}\na,b,c,d\n", "line 2 has 4 values instead of 5"),
        (f"{HEADER}\na,b,c,d,e\na,,c,d,e\n", "line 3, column password, is empty"),
        (f"{HEADER}\na,b,c,d,e\n\n", "line 3 has 0 values instead of 5"),
    ],
)
def test_a_wrong_file_of_users_is_refused_with_line_and_column(
    tmp_path: Path, text: str, words: str
) -> None:
    """JMeter would ask for tokens of nobody, and Keystone refuse all of them."""
    path = tmp_path / "users.csv"
    path.write_text(text)

    with pytest.raises(target.TargetError) as refused:
        target.of_url("http://k:5000", path, {})
    assert words in str(refused.value)
    assert HEADER in str(refused.value)


def test_users_in_any_order_with_more_columns(tmp_path: Path) -> None:
    """As the header says."""
    path = tmp_path / "users.csv"
    columns = HEADER.split(",")[::-1]
    path.write_text(f"note,{','.join(columns)}\n,e,d,c,b,a\n")

    assert target.of_url("http://k:5000", path, {}).properties["users_file"]


def run(good: int, failed: int, code: str = "500", message: str = "Oh, no") -> Run:
    """Return a run of so many requests."""
    one = ("POST /v3/auth/tokens password", "201", "Created")
    other = ("GET /v3/auth/tokens", code, message)
    samples = [
        Sample(
            0, 0.1, 0.1, 0, *words, "t", success=words is one, size_bytes=1, timing=None
        )
        for words, number in ((one, good), (other, failed))
        for _ in range(number)
    ]
    return named("r", break_down(samples))


def test_some_requests_may_fail() -> None:
    """Up to the share, and of no requests none failed."""
    failures.check([run(95, 5)], 0.05)
    failures.check([run(0, 0)], 0)
    with pytest.raises(failures.TooManyFailedError, match=r"6 of 100 .* \(6 %\)"):
        failures.check([run(94, 6)], 0.05)


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        ("Non HTTP response code: X", "Connection refused", "Nothing listens there"),
        ("Non HTTP response code: X", "Read timed out", "No answer in time"),
        ("Non HTTP response code: NoHttpResponseException", "", "keep_alive=false"),
        ("401", "UNAUTHORIZED", "a token has expired"),
        ("404", "NOT FOUND", "the token asked about has expired"),
        ("503", "Service Unavailable", "server's log"),
        ("418", "I'm a teapot", "100 GET /v3/auth/tokens: 418 I'm a teapot."),
    ],
)
def test_what_failed_is_said_with_what_to_do(
    code: str, message: str, words: str
) -> None:
    """By the call and its answer."""
    with pytest.raises(failures.TooManyFailedError) as refused:
        failures.check([run(0, 100, code, message)], 0.05)
    assert "100 of 100 requests failed (100 %)" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["-1%", "101%", "five", "", "5 %%"])
def test_a_share_of_errors_is_a_percentage(text: str) -> None:
    """The message shows one."""
    result = CliRunner().invoke(main, ["load", "token-issue", "--max-errors", text])

    assert result.exit_code == 2
    assert "such as 5%" in result.output


def test_a_call_of_a_service_that_is_not_there_is_refused() -> None:
    """Unless it is said where another one is."""
    where = target.Target({}, absent={"target_port": target.NO_SERVICE})

    with pytest.raises(target.TargetError, match="keylag up --with service"):
        load_of(plans.find("service-call"), where, {})
    assert load_of(plans.find("service-call"), where, {"target_port": "80"})
    assert load_of(plans.find("token-issue"), where, {})


def test_ctrl_c_before_the_first_sample_is_no_mistake(
    users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Java starts: there is nothing to show, and nothing to explain."""
    nothing = Result(tmp_path / "none", tmp_path / "none", interrupted=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("keylag.commands.load.send", lambda *_: nothing)
    arguments = ["token-issue", "--url", "http://k:5000", "--users", str(users)]
    result = CliRunner().invoke(main, ["load", *arguments])

    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")
    assert list((tmp_path / "out" / "load" / "token-issue").iterdir()) == []


@pytest.mark.stack
def test_a_load_that_failed_is_kept_and_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every token is issued, and nothing answers where the service should be."""
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
    assert "where the time goes is not known" in result.output
    latest = tmp_path / "out" / "load" / "service-call" / "latest"
    assert {"breakdown.json", "report.html", "samples.jtl"} <= {
        path.name for path in latest.iterdir()
    }
