"""`keylag load --remote` with two real engines against a fake Keystone."""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_keystone import FakeKeystone, password_of, running

from keylag import jtl
from keylag.load_runner import jmeter_home
from keylag.tools.tool import ToolError
from keylag_dev.engine_processes import (
    KEYLAG,
    EngineProcess,
    create_keystore,
    engine_running,
    wait_for_samples,
)

pytestmark = pytest.mark.stack

ISSUE = "POST /v3/auth/tokens password"
SHORT = {"threads": "2", "loops": "5", "ramp_seconds": "0"}
ENDLESS = {"threads": "2", "loops": "-1", "rate_per_second": "20", "ramp_seconds": "0"}


LOADS: list[subprocess.Popen[str]] = []


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore that controller and engines have in common."""
    try:
        jmeter_home()
    except ToolError as error:
        pytest.skip(str(error))
    return create_keystore(tmp_path_factory.mktemp("keystore"))


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of users that only the engines are given."""
    path = tmp_path_factory.mktemp("users") / "users.csv"
    rows = [
        f'user{n},"{password_of(f"user{n}").replace(chr(34), chr(34) * 2)}",D,d,D'
        for n in range(5)
    ]
    header = "username,password,user_domain,project,project_domain"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def pair(
    keystore: Path, users: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[EngineProcess]]:
    """Two engines that tests leave running."""
    folder = tmp_path_factory.mktemp("engines")
    env = {"OS_USERNAME": "user1", "OS_PASSWORD": password_of("user1")}
    words = ("--keystore", keystore, "--users", users)
    with (
        engine_running(folder, *words, env=env) as one,
        engine_running(folder, *words, env=env) as two,
    ):
        yield [one, two]


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    """A fake Keystone for one test."""
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def no_load_is_left() -> Iterator[None]:
    """End the loads that a failed test leaves."""
    yield
    for load in LOADS:
        load.terminate()
        load.wait(120)
    LOADS.clear()


def start_load(
    plan: str,
    keystone: FakeKeystone,
    engines: list[EngineProcess],
    settings: dict[str, str],
    *options: str | Path,
) -> subprocess.Popen[str]:
    """Start `keylag load --remote`; the controller has neither users nor passwords."""
    names = ",".join(str(one.engine) for one in engines)
    words = [f"--set={name}={value}" for name, value in settings.items()]
    load = subprocess.Popen(
        [
            *(KEYLAG, "load", plan, "--url", keystone.url, "--remote", names),
            *(*words, *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key[:3] != "OS_"},
    )
    LOADS.append(load)
    return load


def by_engine(samples: list[jtl.Sample]) -> Counter[tuple[str, str, str]]:
    """Return the number of samples by engine, label and code."""
    return Counter(
        (sample.thread.partition("-")[0], sample.label, sample.code)
        for sample in samples
    )


def test_two_engines_send_the_whole_plan_each(
    pair: list[EngineProcess], keystone: FakeKeystone, keystore: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--keystore", keystore, "--output", "json", "--out", out)
    load = start_load("token-issue", keystone, pair, SHORT, *words)
    stdout, stderr = load.communicate(timeout=300)
    samples, warnings = jtl.read_samples(out / "samples.jtl")
    run = json.loads(stdout)

    assert (load.returncode, warnings) == (0, [])
    assert by_engine(samples) == {
        (str(one.engine), label, "201"): number
        for one in pair
        for label, number in ((ISSUE, 10), (f"setup {ISSUE}", 2))
    }
    assert keystone.requests == {("POST", 201): 24}
    assert [call["requests"] for call in run["calls"]] == [20]
    assert run["calls"][0]["unmeasured"] == 0
    assert run["environment"]["virtual_users"] == "4"
    assert run["warnings"] == []
    assert "2 engines x 2 virtual users = 4 virtual users." in stderr
    assert f"Engine {pair[1].engine}: 10 requests, no errors" in stderr
    left = b"".join(path.read_bytes() for path in out.iterdir())
    assert b"canary" not in left
    assert "canary" not in "".join(one.log() for one in pair)


@pytest.mark.parametrize(
    "plan", [pytest.param("token-validate", marks=pytest.mark.matrix), "token-mixed"]
)
def test_each_engine_has_its_own_tokens_in_each_load(
    plan: str,
    pair: list[EngineProcess],
    keystone: FakeKeystone,
    keystore: Path,
    tmp_path: Path,
) -> None:
    more = {"subjects": "3"} if plan == "token-validate" else {"loops": "25"}
    words = ("--keystore", keystore, "--out", tmp_path / "out")
    load = start_load(plan, keystone, pair, {**SHORT, **more}, *words)
    _, stderr = load.communicate(timeout=300)
    samples, _ = jtl.read_samples(tmp_path / "out" / "samples.jtl")

    assert load.returncode == 0, stderr
    assert all(sample.success for sample in samples)
    assert len({sample.thread.partition("-")[0] for sample in samples}) == 2
    if plan == "token-mixed":
        assert keystone.requests["DELETE", 204] > 0


def test_ctrl_c_stops_the_load_and_leaves_the_engines(
    pair: list[EngineProcess], keystone: FakeKeystone, keystore: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--keystore", keystore, "--out", out)
    load = start_load("token-issue", keystone, pair, ENDLESS, *words)
    wait_for_samples(out / "samples.jtl", pair, 10)
    load.send_signal(signal.SIGINT)
    _, stderr = load.communicate(timeout=120)
    sent = keystone.requests.total()
    samples, _ = jtl.read_samples(out / "samples.jtl")
    time.sleep(2)

    assert load.returncode == 130, stderr
    assert keystone.requests.total() == sent
    assert len(samples) == sent
    assert [one.process.poll() for one in pair] == [None, None]
    assert [one.engine.connection_error() for one in pair] == ["", ""]


def test_busy_engine_is_explained_and_its_load_goes_on(
    pair: list[EngineProcess], keystone: FakeKeystone, keystore: Path, tmp_path: Path
) -> None:
    words = ("--keystore", keystore, "--out", tmp_path / "first")
    first = start_load("token-issue", keystone, pair[:1], ENDLESS, *words)
    wait_for_samples(tmp_path / "first" / "samples.jtl", pair[:1], 1)
    words = ("--keystore", keystore, "--out", tmp_path / "second")
    second = start_load("token-issue", keystone, pair, ENDLESS, *words)
    _, stderr = second.communicate(timeout=300)
    time.sleep(10)  # JMeter ends five seconds after its last engine
    running_on = first.poll() is None
    sent = keystone.requests.total()
    time.sleep(1)
    still_sent = keystone.requests.total() - sent
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=120)

    assert second.returncode == 1
    assert f"did not start on {pair[0].engine}" in stderr
    assert "busy with another load" in stderr
    assert running_on
    assert 0 < still_sent <= 40


def test_other_keystore_is_explained(
    pair: list[EngineProcess], keystone: FakeKeystone, tmp_path: Path
) -> None:
    words = ("--keystore", create_keystore(tmp_path), "--out", tmp_path / "out")
    load = start_load("token-issue", keystone, pair, SHORT, *words)
    _, stderr = load.communicate(timeout=300)

    assert load.returncode == 1
    assert "Copy one keystore to all machines" in stderr


def test_missing_tls_on_one_side_is_explained(
    pair: list[EngineProcess], keystone: FakeKeystone, tmp_path: Path
) -> None:
    words = ("--no-tls", "--out", tmp_path / "out")
    load = start_load("token-issue", keystone, pair, SHORT, *words)
    _, stderr = load.communicate(timeout=300)

    assert load.returncode == 1
    assert "Use --no-tls on both or on neither" in stderr


def test_lost_engine_ends_the_load_and_keeps_its_samples(
    pair: list[EngineProcess],
    keystone: FakeKeystone,
    keystore: Path,
    users: Path,
    tmp_path: Path,
) -> None:
    words = ("--keystore", keystore)
    out = tmp_path / "out"
    with engine_running(tmp_path, *words, "--users", users) as mortal:
        engines = [pair[0], mortal]
        load = start_load(
            "token-issue", keystone, engines, ENDLESS, *words, "--out", out
        )
        wait_for_samples(out / "samples.jtl", engines, 10)
        mortal.kill_jmeter()
        stdout, stderr = load.communicate(timeout=120)
        code = mortal.process.wait(60)
    samples, _ = jtl.read_samples(out / "samples.jtl")
    count = re.search(rf"Engine {mortal.engine}: (\d+) requests", stderr)

    assert (load.returncode, code) == (1, 1)
    assert f"Engine {mortal.engine} was lost during the load" in stderr
    assert count
    assert int(count[1]) >= 8
    assert "Latency at the client" in stdout
    assert {"breakdown.json", "report.html"} <= {path.name for path in out.iterdir()}
    assert by_engine(samples)[str(pair[0].engine), ISSUE, "201"] >= 8
    assert pair[0].engine.connection_error() == ""


def test_engines_end_after_the_load_on_request(
    keystone: FakeKeystone, users: Path, tmp_path: Path
) -> None:
    with engine_running(tmp_path, "--no-tls", "--users", users) as one:
        words = ("--no-tls", "--stop-engines", "--out", tmp_path / "out")
        load = start_load("token-issue", keystone, [one], SHORT, *words)
        _, stderr = load.communicate(timeout=300)
        code = one.process.wait(60)

    assert (load.returncode, code) == (0, 0), stderr
    assert "Without TLS, tokens and passwords travel unencrypted" in stderr
