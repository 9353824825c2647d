"""Engines of a load: addresses, the controller's log, clocks, and wrong options."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag import engine_facts, engine_log, load_plans, load_target, remote_engines
from keylag.cli import main
from keylag.jmeter import LoadResult
from keylag.jtl import Sample
from keylag.load_runner import describe_engines
from keylag.remote_engines import Access, Engine

ONE, TWO = Engine("load1", 1099), Engine("load2", 2001)
LOG = """\
02:28:09 INFO JMeter: Started remote host:  load1:1099 (1000000)
02:28:10 INFO JMeter: Started remote host:  load2:2001 (1001000)
02:28:20 INFO JMeter: Finished remote host: load1:1099 (1060000)
"""


def sample(
    engine: Engine, start: float, *, success: bool = True, label: str = "GET"
) -> Sample:
    """Return a sample of one second that an engine sent."""
    thread = f"{engine}-Virtual users 1-1"
    words = (label, "200", "OK", thread)
    return Sample(start, 1, 1, 0, *words, success, size_bytes=1, timing=None)


@pytest.fixture
def log(tmp_path: Path) -> engine_log.EngineLog:
    """The log of a controller with two engines, of which one has ended."""
    path = tmp_path / "jmeter.log"
    path.write_text(LOG)
    found = engine_log.EngineLog(path)
    found.poll()
    return found


@pytest.mark.parametrize(
    ("text", "engines"),
    [
        ("load1", ("load1:1099",)),
        ("load1, 192.0.2.7:2001", ("load1:1099", "192.0.2.7:2001")),
        ("[2001:db8::1]:2001", ("[2001:db8::1]:2001",)),
    ],
)
def test_addresses_have_a_default_port(text: str, engines: tuple[str, ...]) -> None:
    assert tuple(map(str, remote_engines.parse_engines(text))) == engines


@pytest.mark.parametrize("text", ["", "a,", "a:b", "a:0", "http://a", "u@a", "a:99999"])
def test_invalid_addresses_are_rejected_with_the_form(text: str) -> None:
    with pytest.raises(remote_engines.EngineAddressError, match="HOST or HOST:PORT"):
        remote_engines.parse_engines(text)


def test_an_engine_is_named_once() -> None:
    with pytest.raises(remote_engines.EngineAddressError, match="twice"):
        remote_engines.parse_engines("load1,load1:1099")


def test_all_engines_that_do_not_answer_are_named() -> None:
    with pytest.raises(remote_engines.EngineError) as refused:
        remote_engines.require_reachable([Engine("127.0.0.1", 9), Engine("::1", 9)])

    assert "Engine 127.0.0.1:9 does not answer" in str(refused.value)
    assert "Engine [::1]:9 does not answer" in str(refused.value)
    assert "keylag engine --listen 127.0.0.1:9 --users FILE" in str(refused.value)


def test_controller_has_an_address_for_each_engine() -> None:
    local = Engine("127.0.0.1", 2001)

    assert remote_engines.controller_address([local]) == "127.0.0.1"


def test_missing_keystore_error_has_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(remote_engines.EngineAddressError) as refused:
        Access(tmp_path / "none.jks").require_keystore()

    assert "keytool -genkeypair" in str(refused.value)
    assert str(tmp_path / "none.jks") in str(refused.value)


def test_without_tls_there_is_no_keystore(tmp_path: Path) -> None:
    assert Access(None).private_properties(tmp_path) == {
        "server.rmi.ssl.disable": "true"
    }
    assert list(tmp_path.iterdir()) == []


def test_keystore_has_the_same_path_on_all_machines(tmp_path: Path) -> None:
    keystore = tmp_path / "mine.jks"
    keystore.write_bytes(b"x")
    folder = tmp_path / "scratch"
    folder.mkdir()
    properties = Access(keystore).private_properties(folder)

    name = properties["server.rmi.ssl.keystore.file"]
    assert (name, (folder / name).read_bytes()) == ("rmi_keystore.jks", b"x")


def test_log_has_start_and_end_of_each_engine(log: engine_log.EngineLog) -> None:
    assert log.started == {"load1:1099": 1000, "load2:2001": 1001}
    assert log.finished == {"load1:1099": 1060}


def test_engines_that_accepted_the_load_run_until_they_end(tmp_path: Path) -> None:
    path = tmp_path / "jmeter.log"
    sent = "".join(f"sent run command to {name}\n" for name in ("load1:1099", "b:1"))
    path.write_text(sent + LOG)
    log = engine_log.EngineLog(path)
    log.poll()

    assert log.running() == {"b:1"}


def test_log_is_read_on_from_the_last_complete_line(tmp_path: Path) -> None:
    path = tmp_path / "jmeter.log"
    log = engine_log.EngineLog(path)
    for text in ("", LOG[:100], LOG):
        path.write_text(text)
        log.poll()

    assert len(log.started) == 2
    with path.open("a") as stream:
        stream.write("The following remote engines have not started:[load2:2001]\n")
    log.poll()
    assert log.not_started == "load2:2001"


@pytest.mark.parametrize(
    ("start", "warning"),
    [
        (1000.2, ""),
        (1058.5, ""),
        (940.0, "load1:1099 is at least 60 s behind this machine's"),
        (1079.0, "load1:1099 is at least 20 s ahead of this machine's"),
    ],
)
def test_clock_of_an_engine_is_compared_with_the_controllers(
    start: float, warning: str, log: engine_log.EngineLog
) -> None:
    found = engine_facts.clock_warnings([sample(ONE, start)], [ONE, TWO], log)
    text = " ".join(found)

    assert bool(text) == bool(warning)
    assert warning in text


def test_requests_are_counted_by_engine() -> None:
    samples = [
        sample(ONE, 1, label="setup GET"),
        sample(ONE, 1),
        sample(ONE, 2, success=False),
    ]

    assert engine_facts.count_lines(samples, [ONE, TWO]) == [
        "Engine load1:1099: 2 requests, 1 errors",
        "Engine load2:2001: 0 requests, no errors",
    ]


def test_description_adds_up_users_and_rates() -> None:
    plan = load_plans.find_plan("token-issue")
    chosen = {"threads": "3", "loops": "5", "rate_per_second": "2.5"}

    assert describe_engines(plan, chosen, 2) == (
        "2 engines x 3 virtual users = 6 virtual users, "
        "2 x 2.5 requests/s = 5 requests/s."
    )
    assert plan.expected_requests(chosen, 2) == 30
    assert plan.environment_facts(chosen, 2)["virtual_users"] == "6"


def test_target_of_engines_has_no_users_and_no_secrets(tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text(
        "username,password,user_domain,project,project_domain\na,b,c,d,e\n"
    )
    env = {"OS_USERNAME": "svc", "OS_PASSWORD": "canary"}
    target = load_target.from_url("http://k.example:5000", users, env)

    assert load_target.for_engines(target, [ONE]) == load_target.LoadTarget(
        load_target.split_url("http://k.example:5000")
    )


def test_far_engines_need_a_keystone_that_they_reach() -> None:
    target = load_target.LoadTarget(load_target.split_url("http://127.0.0.1:5000"))

    with pytest.raises(load_target.TargetError, match="with --url"):
        load_target.for_engines(target, [Engine("192.0.2.7", 1099)])
    assert load_target.for_engines(target, [Engine("127.0.0.1", 1099)]) == target


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stop-engines"], "need --remote"),
        (["--callback", "192.0.2.1"], "need --remote"),
        (["--remote", "a:b"], "is no address of an engine"),
        (["--remote", "127.0.0.1", "--users", "u.csv"], "keylag engine --users FILE"),
        (["--remote", "127.0.0.1", "--set", "users_file=u"], "with --users FILE"),
        (
            ["--remote", "127.0.0.1", "--keystore", "none.jks"],
            "The keystore none.jks does not exist",
        ),
    ],
)
def test_wrong_options_are_rejected_with_advice(words: list[str], message: str) -> None:
    arguments = ["load", "token-issue", "--url", "http://127.0.0.1:5000", *words]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 2
    assert message in result.output


def test_engines_that_do_not_answer_are_a_failure(tmp_path: Path) -> None:
    keystore = tmp_path / "k.jks"
    keystore.touch()
    words = ["--url", "http://127.0.0.1:5000", "--remote", "127.0.0.1:9"]
    arguments = ["load", "token-issue", *words, "--keystore", str(keystore)]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 1
    assert "Engine 127.0.0.1:9 does not answer" in result.output


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("IllegalStateException: Engine is busy - please try later", "another load"),
        ("java.io.InvalidClassException: serialVersionUID = 1", "version of JMeter"),
        ("java.rmi.ConnectIOException: non-JRMP server at remote", "--no-tls on both"),
        ("SSLHandshakeException: PKIX path validation failed", "one keystore"),
        ("java.rmi.ConnectException: Connection refused to host: x", "--callback"),
    ],
)
def test_reasons_in_the_log_are_explained(
    tmp_path: Path, line: str, advice: str
) -> None:
    (tmp_path / "jmeter.log").write_text(f"ERROR {line}\n")

    assert advice in engine_log.explain(tmp_path / "jmeter.log")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["engine", "--no-tls"], 1, "give --users"),
        (["engine", "--listen", "a:b"], 2, "is no address of an engine"),
        (["engine", "--keystore", "none.jks"], 2, "keytool -genkeypair"),
        (["engine", "--no-tls", "--users", "none.csv"], 2, "none.csv does not exist"),
        (
            ["load", "token-issue", "--no-tls", "--remote", "::1"],
            2,
            "HOST or HOST:PORT",
        ),
        (["load", "token-issue", "--no-tls", "--remote", "a"], 1, "give --url"),
    ],
)
def test_commands_say_what_is_missing(
    words: list[str], code: int, message: str, tmp_path: Path
) -> None:
    result = CliRunner().invoke(main, [*words, "--state", str(tmp_path)])

    assert result.exit_code == code
    assert message in result.output


def test_port_of_an_engine_is_free(tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text(
        "username,password,user_domain,project,project_domain\na,b,c,d,e\n"
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["--users", str(users), "--out", str(tmp_path / "out"), "--no-tls"]
        listen = f"127.0.0.1:{taken.getsockname()[1] - 1}"
        result = CliRunner().invoke(main, ["engine", "--listen", listen, *words])

    assert result.exit_code == 2
    assert "An engine needs two ports" in result.output


def test_refusal_before_the_first_sample_is_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = LoadResult(
        tmp_path / "none", tmp_path / "none", interrupted=False, failure="It is busy."
    )
    monkeypatch.setattr("keylag.commands.load.send_load", lambda *_, **__: refused)
    monkeypatch.setattr("keylag.commands.load.require_reachable", lambda _: None)
    monkeypatch.setattr("keylag.commands.load.jmeter_home", lambda: tmp_path)
    words = ["--no-tls", "--remote", "127.0.0.1", "--out", str(tmp_path / "out")]
    arguments = ["load", "token-issue", "--url", "http://127.0.0.1:5000", *words]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 1
    assert "Error: It is busy." in result.output
