"""The patch in docs/upstream fixes the bugs that it describes."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "upstream" / "osprofiler-otlp.ed"
BASE = "4e3e0ec6-2938-40b1-8504-09eb1d4b0dee"
SLOW = "1c089ea8-28fe-4f3d-8c00-f6daa2bc32f1"
FAST = "2c089ea8-28fe-4f3d-8c00-f6daa2bc32f2"

#: The notifications of two threads: name, thread and second.
NOTIFIED = (
    ("project-start", SLOW, 0),
    ("cast-start", FAST, 1),
    ("project-stop", SLOW, 5),
    ("cast-stop", FAST, 7),
)


def loaded(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("otlp_under_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def notified(file: Path) -> tuple[dict[str, float], bool]:
    """Send the points to the driver in a file, in another process.

    Return the seconds of each span that it makes, by name, and whether it has set
    the global tracer provider.
    """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import export
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )
    from oslo_config import cfg
    from osprofiler import opts

    kept, before = InMemorySpanExporter(), trace.get_tracer_provider()
    export.BatchSpanProcessor = lambda _: export.SimpleSpanProcessor(kept)
    opts.set_defaults(cfg.CONF)
    driver = loaded(file).OTLP("otlp://127.0.0.1:1", "p", "s", conf=cfg.CONF)
    for name, trace_id, second in NOTIFIED:
        ids = {"base_id": BASE, "parent_id": BASE, "trace_id": trace_id}
        timestamp = f"2026-01-01T00:00:0{second}.000000"
        info = {"host": "h"}
        driver.notify({"name": name, **ids, "timestamp": timestamp, "info": info})
    spans = {
        span.name: (span.end_time - span.start_time) / 1e9
        for span in kept.get_finished_spans()
    }
    return spans, trace.get_tracer_provider() is not before


@pytest.fixture
def installed() -> Path:
    reason = "this OSProfiler has no driver for OTLP"
    otlp = pytest.importorskip("osprofiler.drivers.otlp", reason=reason)
    return Path(otlp.__file__)


@pytest.fixture
def mended(installed, tmp_path) -> Path:
    file = tmp_path / "otlp.py"
    apply_script = runpy.run_path(str(SCRIPT.with_name("run.py")))["apply_script"]
    lines = apply_script(
        installed.read_text().splitlines(), SCRIPT.read_text().splitlines()
    )
    file.write_text("\n".join(lines) + "\n")
    return file


def test_installed_driver_has_the_bugs(processes, installed) -> None:
    spans, has_set_provider = processes.run(notified, installed)

    assert spans.keys() == {"projec", "c"}
    assert all(seconds < 1 for seconds in spans.values())
    assert has_set_provider


def test_patched_driver_has_no_bugs(processes, mended) -> None:
    spans, has_set_provider = processes.run(notified, mended)

    assert spans == {"project": 5.0, "cast": 6.0}
    assert not has_set_provider
