"""Names that packages share without importing each other."""

import ast
import tomllib
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from keylag import phases
from keylag.diagnosis.from_configuration import CACHED_SECTIONS
from keylag.experiment import grafana_annotations
from keylag_dashboards.boards import experiment
from keylag_dashboards.config import COLORS
from keylag_exporters import revocations
from keylag_exporters.slow_log.sql_comment import COMMENT
from keylag_exporters.slow_log.tables import TABLE_CLASSES
from keylag_otel import gauges, model, revocation, sql_comment, statements

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "collectors/src": "keylag_otel",
    "exporters/src": "keylag_exporters",
    "keylag/src": "keylag",
    "dashboards/src": "keylag_dashboards",
}
MAY_IMPORT = {
    "keylag_dashboards": {"keylag_otel", "keylag_exporters"},
    "keylag": {"keylag_exporters"},
}
"""Dashboards import the declarations of metrics, the command the probe."""


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_test_files_have_unique_names() -> None:
    """Pytest cannot import two test files with the same name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = settings["tool"]["pytest"]["ini_options"]["testpaths"]
    names = Counter(
        path.name for folder in folders for path in (ROOT / folder).glob("test_*.py")
    )

    assert names.total() > len(folders)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(("folder", "own"), PACKAGES.items())
def test_packages_are_independent(folder: str, own: str) -> None:
    """Collectors, exporters and command run in different environments."""
    others = set(PACKAGES.values()) - {own} - MAY_IMPORT.get(own, set())
    found = {
        path.name: imported(path) & others for path in (ROOT / folder).rglob("*.py")
    }

    assert "__init__.py" in found
    assert {name: names for name, names in found.items() if names} == {}


def test_table_classes_agree() -> None:
    seen_inside = {
        part: frozenset(tables.split())
        for part, tables in statements.TABLE_CLASSES.items()
    }

    assert seen_inside == dict(TABLE_CLASSES)
    assert list(seen_inside) == [part for part, _ in TABLE_CLASSES]


def test_kinds_of_revocation_events_agree() -> None:
    """In Keystone the domain scope is an attribute of an event, not a column."""
    seen_inside = [
        (kind, attribute)
        for attribute, kind in revocation.KINDS.items()
        if attribute != "domain_scope_id"
    ]

    assert seen_inside == list(revocations.EVENT_KINDS)


def test_exporter_parses_the_sql_comment() -> None:
    written = sql_comment.comment("POST", "/v3/auth/tokens", "validate")

    found = COMMENT.search(f"SELECT 1{written}".encode())
    assert found is not None
    assert found[1] == b"route='POST /v3/auth/tokens',operation='validate'"


def test_phases_operations_and_categories_agree() -> None:
    assert set(model.PHASES) == set(phases.PHASES)
    assert set(model.OPERATIONS) == set(phases.OPERATIONS)
    assert list(model.CATEGORIES) == list(phases.CATEGORIES)


def test_cached_sections_agree() -> None:
    assert gauges.CACHED_SECTIONS == CACHED_SECTIONS


def test_dashboard_shows_the_annotations_of_experiments() -> None:
    assert experiment.BOARD.grafana_tags == grafana_annotations.TAGS


def module_imports(source: Path, package: str) -> dict[str, set[str]]:
    """Return the modules of a package, each with those that it imports when loaded."""
    modules = {}
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = path
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    found.add(module if module in modules else str(node.module))
        graph[name] = {one for one in found if one in modules and one != name}
    assert package in graph
    return graph


@pytest.mark.parametrize(("folder", "package"), PACKAGES.items())
def test_modules_do_not_import_each_other_in_circles(folder: str, package: str) -> None:
    order = TopologicalSorter(module_imports(ROOT / folder, package)).static_order()

    assert package in list(order)


def test_reports_have_the_colours_of_the_dashboards() -> None:
    css = (ROOT / "keylag/src/keylag/report/templates/style.css").read_text()

    for category, color in COLORS.items():
        assert f"--{category}: {color};" in css
