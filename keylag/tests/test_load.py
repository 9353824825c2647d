"""`keylag load`: where it goes, and what it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag import plans, target
from keylag.commands.load import command, properties
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
    result = CliRunner().invoke(command, arguments)

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
