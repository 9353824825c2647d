"""Installation of keylag-otel in Keystone's environment."""

import re
import subprocess
from pathlib import Path

import pytest

from keylag.paths import CHECKOUT
from keylag_dev.keystone_environment import Environment, copy_collectors

LOCK = CHECKOUT / "locks" / "keystone-zed.txt"
PAGES = [
    *(CHECKOUT / "docs").rglob("*.md"),
    CHECKOUT / "README.md",
    CHECKOUT / "collectors" / "README.md",
]
INSTALLS = re.compile(r"^.*pip install.*(?:collectors|keylag-otel).*$", re.MULTILINE)


@pytest.fixture
def keystone_environment(tmp_path: Path) -> Environment:
    """Keystone's environment without OpenTelemetry, with an old protobuf."""
    made = Environment(tmp_path / "venv")
    made.pip("install", "--require-hashes", "-r", LOCK)
    names = (line.partition("==")[0] for line in made.freeze())
    made.pip("uninstall", *(n for n in names if n.startswith("opentelemetry-")))
    return made


@pytest.fixture
def collectors(tmp_path: Path) -> Path:
    """A copy of the package without build output."""
    return copy_collectors(tmp_path)


@pytest.mark.matrix
def test_install_with_constraints_keeps_keystones_packages(
    keystone_environment: Environment, collectors: Path, tmp_path: Path
) -> None:
    before = keystone_environment.freeze()
    constraints = tmp_path / "upper-constraints.txt"
    constraints.write_text("\n".join(before))

    keystone_environment.pip("install", "-c", constraints, f"{collectors}[otlp]")

    after = keystone_environment.freeze()
    added = {line.partition("==")[0] for line in after - before}
    assert before - after == set()
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"} <= added
    built = "from keylag_otel import meter_provider; assert meter_provider.build()"
    subprocess.run([keystone_environment.python, "-c", built], check=True)


def test_documented_installs_use_constraints() -> None:
    lines = [line for page in PAGES for line in INSTALLS.findall(page.read_text())]

    assert len(lines) > 2
    assert [line for line in lines if " -c " not in line] == []
