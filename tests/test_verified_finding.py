"""`keylag diagnose --verify` on a real stack with a planted fault."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag.commands import diagnose
from keylag.demo import SAMPLE_CLOUD
from keylag.faults.journal import Journal
from keylag.faults.planting import planted
from keylag.faults.registry import FAULTS
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag_dev.diagnosis_cases import Load
from keylag_dev.diagnosis_score import send

pytestmark = [pytest.mark.stack, pytest.mark.matrix]

LOAD_SECONDS = 45
DELAY_MS = 20.0
"""In each direction of a cache call."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own, because the verification restarts its servers."""
    options = StackOptions(cache="memcache_pool")
    folder: Path = tmp_path_factory.mktemp("verified")
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        yield started


def test_far_cache_costs_validations_what_was_predicted(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with planted(stack, FAULTS["C4"], DELAY_MS):
        with send(stack, Load(), tmp_path / "load"):
            time.sleep(LOAD_SECONDS)
        words = [f"--state={stack.folder}", "--since=30s", "--verify=C4"]
        result = CliRunner().invoke(diagnose.command, [*words, "--output=json"])
        after = [(one.key, one.strength) for one in Journal(stack.folder).planted]

    document = json.loads(result.stdout)
    calls = document["verification"]["calls"]["GET"]
    assert after == [("C4", DELAY_MS)]
    assert calls["measured_saving_seconds"][0] > 0, document
    assert calls["verdict"] == "agrees", document
    assert Path(document["experiment"]).with_name("report.html").exists()
