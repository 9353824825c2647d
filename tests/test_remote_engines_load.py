"""`keylag load --remote` with two engines against a real Keystone."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from traffic import SentCalls

from keylag.jtl import read_samples
from keylag.stack import Stack
from keylag_dev.engine_processes import (
    KEYLAG,
    EngineProcess,
    create_keystore,
    engine_running,
    wait_for_samples,
)

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore that controller and engines have in common."""
    return create_keystore(tmp_path_factory.mktemp("keystore"))


@pytest.fixture(scope="module")
def survivor(
    stack: Stack,
    sent: SentCalls,  # counted before, so that these loads do not affect it
    keystore: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[EngineProcess]:
    """An engine with the users of the stack."""
    folder = tmp_path_factory.mktemp("engine")
    words = ("--keystore", keystore, "--state", stack.folder)
    with engine_running(folder, *words) as one:
        yield one


def test_a_lost_engine_ends_the_second_of_two_loads(
    stack: Stack, survivor: EngineProcess, keystore: Path, tmp_path: Path
) -> None:
    """The first load is complete; the second one keeps the samples of both engines."""
    words = ("--keystore", keystore, "--state", stack.folder)
    with engine_running(tmp_path, *words) as mortal:
        engines = [survivor, mortal]
        names = ",".join(str(one.engine) for one in engines)
        load = (KEYLAG, "load", "token-validate", "--remote", names, *words)
        values = ("threads=2", "subjects=2", "ramp_seconds=0")
        short = (*(f"--set={value}" for value in values), "--output=json")
        whole = subprocess.run(
            [*load, *short, "--set=loops=10", "--out", tmp_path / "whole"],
            capture_output=True,
            check=True,
            timeout=600,
        )
        with subprocess.Popen(
            [*load, *short, "--set=loops=-1", "--out", tmp_path / "cut"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as cut:
            try:
                wait_for_samples(tmp_path / "cut" / "samples.jtl", engines, 8)
                mortal.kill_jmeter()
                stdout, stderr = cut.communicate(timeout=300)
            finally:
                cut.terminate()

    samples, warnings = read_samples(tmp_path / "whole" / "samples.jtl")
    measured = [sample for sample in samples if not sample.is_setup]
    (call,) = json.loads(whole.stdout)["calls"]
    assert warnings == []
    assert all(sample.success for sample in samples)
    assert Counter(sample.thread.partition("-")[0] for sample in measured) == {
        str(one.engine): 20 for one in engines
    }
    assert (call["requests"], call["errors"], call["unmeasured"]) == (40, 0, 0)

    samples, _ = read_samples(tmp_path / "cut" / "samples.jtl")
    measured = [sample for sample in samples if not sample.is_setup]
    (call,) = json.loads(stdout)["calls"]
    assert cut.returncode == 1
    assert f"Engine {mortal.engine} was lost during the load" in stderr
    assert call["requests"] == len(measured)
    assert {sample.thread.partition("-")[0] for sample in measured} == {
        str(one.engine) for one in engines
    }
    assert survivor.engine.connection_error() == ""
