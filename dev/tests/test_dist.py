"""The distributions: what their wheels have in them."""

import json
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from keylag.paths import CHECKOUT
from keylag.tools import TOOLS, venvs

PROJECTS = [CHECKOUT, CHECKOUT / "collectors", CHECKOUT / "exporters"]
DATA_FOLDERS = ("dashboards/generated", "deploy", "experiments", "jmeter-plans")
PRINT_PATHS = """\
import json
from keylag import load_plans, paths
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.services import grafana, prometheus
plans = [*load_plans.list_plans().values(), *PLANS_FOLDER.glob("*.toml")]
folders = [grafana.DASHBOARDS, grafana.ALERTS, prometheus.RULES]
read = [*plans, *folders, paths.DEPLOY / "packages.sh"]
print(json.dumps([paths.INSTALLED, [[str(path), path.exists()] for path in read]]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The wheel of keylag."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(folder),
    ]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return ZipFile(path)


def tracked_files(*folders: str) -> set[str]:
    command = ["git", "ls-files", "-z", *folders]
    listed = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    return set(listed.stdout.decode().rstrip("\0").split("\0"))


def project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="this is no git checkout")
def test_wheel_has_the_package_its_data_and_the_licence(wheel: ZipFile) -> None:
    names = set(wheel.namelist())
    data = {f"keylag/data/{name}" for name in tracked_files(*DATA_FOLDERS)}
    code = {
        name.removeprefix("keylag/src/") for name in tracked_files("keylag/src/keylag")
    }

    assert data | code <= names
    others = {n for n in names - data - code if ".dist-info/" not in n}
    assert {name.rpartition("/")[0] for name in others} == {"keylag/data/locks"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_wheel_has_each_input_of_the_tools(wheel: ZipFile) -> None:
    tools = (*TOOLS, *venvs.KEYSTONE_TOOLS.values())
    inputs = set(chain.from_iterable(tool.inputs for tool in tools))
    # An installed command takes keylag-otel from the index.
    wanted = {f"keylag/data/{name}" for name in inputs - {*venvs.COLLECTORS_INPUTS}}

    assert wanted <= set(wheel.namelist())


def test_installed_package_reads_its_own_files(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_PATHS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        stdout=subprocess.PIPE,
    )
    installed, paths = json.loads(printed.stdout)

    assert installed is True
    assert len(paths) > 10
    data = f"{tmp_path}/keylag/data/"
    assert [path for path, ok in paths if not ok or not path.startswith(data)] == []


def test_distributions_have_one_version_and_licence() -> None:
    (version,) = {project(folder)["version"] for folder in PROJECTS}
    licences = {(folder / "LICENSE").read_bytes() for folder in PROJECTS}

    assert f"keylag-exporters=={version}" in project(CHECKOUT)["dependencies"]
    assert len(licences) == 1
