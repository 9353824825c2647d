"""JMeter runs: checks before the start, and real runs against a fake Keystone."""

import csv
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fake_keystone import FakeKeystone, password_of, running

from keylag import jmeter, jtl, load_plans
from keylag.breakdown import compute_breakdown
from keylag.jmeter_process import JMeterError, format_properties
from keylag.jmeter_progress import JtlProgress, Progress
from keylag.jmeter_run import LocalRun
from keylag.state import state_folder
from keylag.tools import jmeter as jmeter_tool
from keylag.tools.install import require_tool
from keylag.tools.tool import ToolError

ISSUE = "POST /v3/auth/tokens password"
VALIDATE = "GET /v3/auth/tokens"


@pytest.fixture(scope="module")
def home() -> Path:
    """JMeter's home folder."""
    chosen = os.environ.get("KEYLAG_JMETER_HOME")
    try:
        tools = state_folder() / "tools"
        return (
            Path(chosen) if chosen else require_tool(jmeter_tool.TOOL, tools).parents[1]
        )
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    """A fake Keystone for one test."""
    with running() as server:
        yield server


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A CSV file of 20 users with passwords that need quoting."""
    path = tmp_path / "users.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["username", "password", "user_domain", "project"])
        for number in range(20):
            name = f"user{number}"
            rows.writerow([name, password_of(name), "Default", "demo"])
    return path


def load(name: str, keystone: FakeKeystone, users: Path, **more: str) -> jmeter.Load:
    """Return a load whose virtual users start within one second."""
    port = str(keystone.server_address[1])
    values = {"port": port, "users_file": str(users), "ramp_seconds": "1", **more}
    secrets = {}
    if name == "token-validate":
        values["service_username"] = "user1"
        secrets["service_password"] = password_of("user1")
    return jmeter.Load(load_plans.find_plan(name), values, secrets)


def labels(samples: list[jtl.Sample]) -> Counter[tuple[str, str]]:
    """Return the number of samples by label and code."""
    return Counter((sample.label, sample.code) for sample in samples)


def test_property_values_are_escaped() -> None:
    text = format_properties({"b": " =\\\n😀", "a": "x1"})

    assert text == "a=x1\nb=\\u0020\\u003d\\u005c\\u000a\\ud83d\\ude00\n"


def test_secret_in_public_properties_is_rejected(tmp_path: Path) -> None:
    one = jmeter.Load(load_plans.find_plan("token-validate"), {"service_password": "x"})

    with pytest.raises(JMeterError, match="service_password must not"):
        jmeter.run(one, home=tmp_path, out=tmp_path)


def test_repr_hides_secrets() -> None:
    one = jmeter.Load(
        load_plans.find_plan("token-validate"), {}, {"service_password": "canary"}
    )

    assert "canary" not in repr(one)


def test_missing_java_error_has_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(JMeterError, match=r"setup.*to install it"):
        jmeter.run(
            jmeter.Load(load_plans.find_plan("token-issue")),
            home=tmp_path,
            out=tmp_path,
        )


@pytest.mark.stack
def test_every_request_becomes_a_sample_without_secrets(
    home: Path, keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    progress: list[Progress] = []
    out = tmp_path / "out"
    one = load("token-issue", keystone, users)
    result = jmeter.run(one, home=home, out=out, on_progress=progress.append)
    samples, warnings = jtl.read_samples(result.samples)
    (call,) = compute_breakdown(samples)["calls"]

    assert warnings == []
    assert labels(samples) == {(ISSUE, "201"): 100, (f"setup {ISSUE}", "201"): 2}
    assert keystone.requests == {("POST", 201): 102}
    assert len(keystone.users) == 20
    assert progress[-1] == Progress(100, 0, 100)
    assert (call["errors"], call["unmeasured"]) == (0, 0)
    assert call["categories"]["password_hash"]["share"] == pytest.approx(0.5)
    left = b"".join(path.read_bytes() for path in out.iterdir())
    assert b"canary" not in left
    assert b"10.0000,2.0000,1.0000,0.5000,5.0000,0.2500,0.7500,0.5000,6,17" in left


@pytest.mark.stack
def test_validate_plan_issues_its_tokens_as_setup(
    home: Path, keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    result = jmeter.run(
        load("token-validate", keystone, users), home=home, out=tmp_path
    )
    samples, _ = jtl.read_samples(result.samples)

    assert labels(samples) == {(VALIDATE, "200"): 100, (f"setup {ISSUE}", "201"): 11}
    assert b"canary" not in result.log.read_bytes() + result.samples.read_bytes()


@pytest.mark.stack
def test_mixed_plan_expects_401_for_revoked_tokens(
    home: Path, keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    result = jmeter.run(load("token-mixed", keystone, users), home=home, out=tmp_path)
    samples, _ = jtl.read_samples(result.samples)
    found = labels(samples)

    assert all(sample.success for sample in samples)
    assert len(samples) == 110
    assert found[VALIDATE, "401"] > 0
    assert found["DELETE /v3/auth/tokens", "204"] > 0


@pytest.mark.stack
def test_missing_header_leaves_empty_columns(
    home: Path, users: Path, tmp_path: Path
) -> None:
    with running(timing=None) as keystone:
        few = load("token-issue", keystone, users, threads="2", loops="2")
        result = jmeter.run(few, home=home, out=tmp_path)
    samples, _ = jtl.read_samples(result.samples)

    assert [sample.timing for sample in samples] == [None] * 6
    assert ",,,,,,,,,,\n" in result.samples.read_text()


@pytest.mark.stack
def test_rejected_users_stop_the_load(
    home: Path, keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    users.write_text("username,password\nnobody,wrong\n")

    with pytest.raises(JMeterError, match=r"did not start: setup .* 401"):
        jmeter.run(load("token-issue", keystone, users), home=home, out=tmp_path)


def test_a_load_without_a_request_or_a_failure_was_too_short(tmp_path: Path) -> None:
    served = "label,success,responseCode,responseMessage\nsetup GET /v3,true,200,OK\n"
    files = (tmp_path / "samples.jtl", tmp_path / "jmeter.log")
    result = jmeter.LoadResult(*files, interrupted=False)
    result.samples.write_text(served)
    progress = JtlProgress(result.samples, None)
    progress.poll()
    with subprocess.Popen(["true"]) as process:
        process.wait()

    with pytest.raises(JMeterError, match="needs a longer load") as told:
        jmeter._check_result(process, result, progress, LocalRun())

    assert "names and passwords" not in str(told.value)


@pytest.mark.stack
def test_ctrl_c_stops_jmeter_and_keeps_samples(
    home: Path, keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    endless = load("token-issue", keystone, users, loops="-1", rate_per_second="50")
    listening: list[str] = []

    def interrupt(progress: Progress) -> None:
        if progress.done >= 10 and not listening:
            listening.append(_sockets_of(tmp_path / "samples.jtl"))
            signal.raise_signal(signal.SIGINT)

    result = jmeter.run(endless, home=home, out=tmp_path, on_progress=interrupt)
    samples, _ = jtl.read_samples(result.samples)

    assert result.interrupted
    assert len(samples) >= 10
    assert listening == [""]
    assert _processes_with(tmp_path / "samples.jtl") == []


def _processes_with(path: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(path) in words:
            found.append(int(folder.name))
    return found


def _sockets_of(path: Path) -> str:
    """Return JMeter's listening TCP and UDP sockets; empty if there are none."""
    (pid,) = _processes_with(path)
    handles = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # JMeter has closed it meanwhile
            handles.append(str(fd.readlink()))
    inodes = {name[8:-1] for name in handles if name.startswith("socket:")}
    bound = []
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                bound.append(f"{table} {fields[1]}")
    return ", ".join(bound)
