"""Installation of keylag-otel in Keystone's environment."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from uv import find_uv_bin

from keylag.paths import CHECKOUT
from keylag.tools.venvs import base_interpreter
from keylag_dev.pythons import BUILD_OUTPUT, PACKAGE_FILES

LOCK = CHECKOUT / "locks" / "keystone-zed.txt"
PAGES = [
    *(CHECKOUT / "docs").rglob("*.md"),
    CHECKOUT / "README.md",
    CHECKOUT / "collectors" / "README.md",
]
INSTALLS = re.compile(r"^.*pip install.*(?:collectors|keylag-otel).*$", re.MULTILINE)


class Environment:
    """A virtual environment and its packages."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "bin" / "python"
        self._uv("venv", "-q", "-p", base_interpreter(), folder)

    def pip(self, command: str, *words: object) -> str:
        return self._uv("pip", command, "-q", "--python", self.python, *words)

    def freeze(self) -> set[str]:
        return set(self.pip("freeze").splitlines())

    def _uv(self, *words: object) -> str:
        done = subprocess.run(
            [find_uv_bin(), *map(str, words)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout


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
    for name in PACKAGE_FILES:
        source, target = CHECKOUT / "collectors" / name, tmp_path / "collectors" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=BUILD_OUTPUT)
        else:
            shutil.copy(source, target)
    return tmp_path / "collectors"


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
