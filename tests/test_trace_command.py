"""`keylag trace` and `keylag explain` with real calls."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from redis import Redis

from keylag.cli import main
from keylag.commands import explain, trace
from keylag.services.redis import HMAC_KEY_VARIABLE, traces_url
from keylag.stack import Stack
from keylag.stack_record import load_secrets
from keylag.trace.calls import send_call, stack_session

pytestmark = pytest.mark.stack

KINDS = {
    "password": "POST /v3/auth/tokens",
    "application-credential": "POST /v3/auth/tokens",
    "validate": "GET /v3/auth/tokens",
    "revoke": "DELETE /v3/auth/tokens",
}
FROM_ONE_CALL = 0.3
"""Largest relative difference of totals from two layers of one call."""
WRITE = """
import sys
from osprofiler import notifier, profiler
notifier.set(notifier.create(sys.argv[1]))
profiler.init("key", base_id=sys.argv[2])
request = {"path": "/v3/auth/tokens", "method": "GET"}
with profiler.Trace("wsgi", info={"request": request}):
    text = "SELECT role.id FROM role WHERE role.id = %(id)s"
    with profiler.Trace("db", info={"db": {"statement": text, "params": "canary"}}):
        pass
"""


def run_json(command: Any, *words: str) -> dict[str, Any]:
    """Run a command and return its JSON output."""
    result = CliRunner().invoke(command, [*words, "--output=json"])
    assert result.exit_code == 0, result.output
    read: dict[str, Any] = json.loads(result.stdout)
    return read


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of call."""
    return str(request.param)


@pytest.fixture(scope="module")
def traced(stack: Stack, kind: str) -> dict[str, Any]:
    """The output of `keylag trace` for this kind."""
    return run_json(trace.command, kind, f"--state={stack.folder}")


@pytest.fixture(scope="module")
def validated(stack: Stack) -> dict[str, Any]:
    """The output of `keylag trace validate`."""
    return run_json(trace.command, "validate", f"--state={stack.folder}")


def test_trace_of_a_call_is_consistent(traced: dict[str, Any], kind: str) -> None:
    (root,) = traced["spans"]

    assert traced["call"] == KINDS[kind]
    assert root["name"] == "request"
    assert traced["missing"] == []
    assert list(traced["totals"])[1:] == ["Server-Timing", "the client"]
    total = pytest.approx(traced["wall_seconds"], abs=1e-4)
    assert sum(traced["categories"].values()) == total
    hashed = traced["categories"]["password_hash"] > 0
    assert hashed is (KINDS[kind] == "POST /v3/auth/tokens")


def test_explain_agrees_with_trace(stack: Stack, traced: dict[str, Any]) -> None:
    alone = run_json(explain.command, traced["trace_id"], f"--state={stack.folder}")

    assert alone["statements"] == traced["statements"]
    assert alone["wall_seconds"] == pytest.approx(
        traced["wall_seconds"], rel=FROM_ONE_CALL, abs=0.02
    )
    assert alone["missing"] == []


def test_osprofiler_report_file_is_read(
    stack: Stack, validated: dict[str, Any], tmp_path: Path
) -> None:
    program = Path(sys.executable).with_name("osprofiler")
    report = tmp_path / "report.json"
    where = f"--connection-string={traces_url(stack.port('redis'))}"
    words = ("trace", "show", "--json", where, f"--out={report}")
    subprocess.run([program, *words, validated["trace_id"]], check=True)

    assert (
        run_json(explain.command, str(report))["statements"] == validated["statements"]
    )


def test_stored_trace_has_no_values(stack: Stack, traced: dict[str, Any]) -> None:
    with Redis.from_url(traces_url(stack.port("redis"))) as redis:
        stored = b"".join(redis.lrange(f"osprofiler_opt:{traced['trace_id']}", 0, -1))

    assert b'"name": "wsgi-start"' in stored
    assert b'"params"' not in stored
    assert b"$2b$" not in stored


def test_unsigned_request_is_not_traced(stack: Stack) -> None:
    with Redis.from_url(traces_url(stack.port("redis"))) as redis:
        before = redis.dbsize()
        sent = send_call(stack_session(stack), "password")

        assert sent.trace_id == ""
        assert redis.dbsize() == before


def read_openrc(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables of the openrc file, as `source` does."""
    for line in (stack.folder / "openrc").read_text().splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value.strip("'"))


def test_live_call_is_explained(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    read_openrc(stack, monkeypatch)
    live = run_json(explain.command, "--call=password")

    assert live["source"] == "Server-Timing"
    assert live["call"] == "POST /v3/auth/tokens"
    assert live["categories"]["password_hash"] > 0


def test_wrong_hmac_key_is_explained(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_openrc(stack, monkeypatch)
    monkeypatch.setenv(HMAC_KEY_VARIABLE, "wrong")
    monkeypatch.setattr(trace, "TRACE_TIMEOUT_SECONDS", 1)
    result = CliRunner().invoke(main, ["trace", "validate"])

    assert result.exit_code == 1
    assert (
        f"that {HMAC_KEY_VARIABLE} is one of Keystone's [profiler] hmac_keys"
        in result.stderr
    )


def test_wrong_password_is_explained(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_openrc(stack, monkeypatch)
    monkeypatch.setenv("OS_PASSWORD", "wrong")
    result = CliRunner().invoke(main, ["explain"])

    assert result.exit_code == 1
    assert "rejects the credentials" in result.stderr
    assert "source openrc again" in result.stderr


def test_sqlalchemy_driver_traces_are_read(stack: Stack) -> None:
    password = load_secrets(stack.data).database
    place = f"mysql+pymysql://keystone:{password}@127.0.0.1:{stack.port('mariadb')}"
    url, trace_id = f"{place}/keystone?autocommit=true", str(uuid4())
    python = stack.tools.keystone / "bin" / "python"
    subprocess.run([python, "-c", WRITE, url, trace_id], check=True)
    found = run_json(explain.command, trace_id, f"--from={place}/keystone")

    assert [one["count"] for one in found["statements"]] == [1]
    assert found["call"] == "GET /v3/auth/tokens"
    assert password not in json.dumps(found)
    assert "canary" not in json.dumps(found)


def test_missing_stack_and_credentials_are_explained(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["trace", "validate", f"--state={tmp_path}"])

    assert result.exit_code == 1
    assert "Start one with `keylag up`, or give --url" in result.output
