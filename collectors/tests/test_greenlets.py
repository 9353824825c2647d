"""Servers that switch greenlets in one thread keep breakdowns separate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import green_server
import pytest

COUNT = 10
MS = 1000


@pytest.mark.parametrize("pure", ["false", "true"], ids=["c", "python"])
@pytest.mark.parametrize("name", green_server.SERVERS)
def test_greenlets_have_separate_breakdowns(name, pure) -> None:
    pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, green_server.__file__, name, str(COUNT)],
        env={
            **os.environ,
            "KEYLAG_PURE_PYTHON": pure,
            "KEYLAG_SERVER_TIMING": "true",
            "OTEL_METRICS_EXPORTER": "none",
        },
        capture_output=True,
        check=False,
        cwd=Path(__file__).parent,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    breakdowns = json.loads(done.stdout)

    assert len(breakdowns) == COUNT
    # All waited at the same time, and none for longer than it waited itself.
    for each in breakdowns:
        cells = {name: spent for name, spent in each.items() if "." in name}
        assert sum(cells.values()) == pytest.approx(each["total"], abs=0.01)
        assert each["sql"] >= green_server.SQL_SECONDS * MS
        assert each["cache"] >= green_server.CACHE_SECONDS * MS
        assert set(cells) == {"sql.validate", "cache.roles", "wsgi.other"}
        assert each["total"] <= each["waited"]
