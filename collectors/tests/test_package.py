"""What the package imports into Keystone's process."""

import subprocess
import sys
from importlib.metadata import entry_points, requires


def test_the_base_dependency_is_the_instrumentation_api_alone() -> None:
    base = [r for r in requires("keylag-otel") if "extra ==" not in r]

    assert base == ["opentelemetry-instrumentation"]


def test_import_loads_neither_sdk_nor_keystone() -> None:
    code = (
        "import sys, keylag_otel;"
        "keylag_otel.KeystoneInstrumentor().instrument();"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in"
        " ('keystone', 'sqlalchemy', 'dogpile', 'requests', 'flask')"
        " or m.startswith('opentelemetry.sdk')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == []


def test_opentelemetry_instrument_finds_it() -> None:
    (found,) = [
        e
        for e in entry_points(group="opentelemetry_instrumentor")
        if e.name == "keystone"
    ]

    assert found.value == "keylag_otel:KeystoneInstrumentor"
