"""Generated pages are those that the declarations give today."""

import importlib.util
from pathlib import Path
from types import ModuleType

from keylag_dashboards.metrics import instruments_by_kind

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def load(name: str) -> ModuleType:
    """Load a generator, which is a script and no module."""
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_metrics_is_current() -> None:
    """If this fails, run the generator and commit what it writes."""
    generator = load("generate_metrics")

    assert generator.PAGE.read_text(encoding="utf-8") == generator.page()


def test_every_metric_has_its_own_name_and_a_description() -> None:
    """A name that is used twice would be merged by the SDK."""
    metrics = [instrument for instrument, _ in instruments_by_kind()]

    assert len({metric.name for metric in metrics}) == len(metrics)
    assert all(metric.description for metric in metrics)
