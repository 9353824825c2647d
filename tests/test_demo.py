"""`keylag demo` with a fault, on real servers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keylag import processes
from keylag.state import state_folder

pytestmark = [pytest.mark.stack, pytest.mark.matrix]


def test_demo_finds_the_fault_that_it_plants(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("keylag")
    words = ["demo", "--fault=cache-server-hung", "--output=json"]

    ended = subprocess.run(
        [program, *words, f"--out={tmp_path / 'out'}"],
        check=True,
        capture_output=True,
        text=True,
    )

    document = json.loads(ended.stdout)
    found = {
        name: [one["id"] for one in diagnosis["findings"]]
        for name, diagnosis in document["diagnoses"].items()
    }
    assert document["planted"] == "C2"
    assert found["cache-off"][:1] == ["C1"]
    assert found["cache-server-hung"][:1] == ["C2"]
    assert "C1" not in found["memcache-pool"]
    assert [*processes.find_processes(stack=state_folder() / "demo")] == []
