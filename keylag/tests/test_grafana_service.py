"""Grafana's service: home folder, environment, dashboards and alerts."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from keylag.services import grafana
from keylag.services.base import Secrets, ServiceContext, StackOptions
from keylag_dashboards.boards import BOARDS

SITE = ServiceContext(
    folder=Path("/stack"),
    tools=None,
    options=StackOptions(),
    ports={"grafana": 3000, "prometheus": 9090},
    secrets=Secrets("admin's", "database's"),
)
ENVIRONMENT = grafana.SERVICE.environment(SITE)


@pytest.mark.parametrize("unpacked", [True, False], ids=["unpacked", "package"])
def test_home_is_that_of_the_archive_or_the_package(
    tmp_path: Path, *, unpacked: bool
) -> None:
    """The program may be a symbolic link."""
    program = tmp_path / "grafana-11" / "bin" / "grafana"
    program.parent.mkdir(parents=True)
    program.touch()
    if unpacked:
        defaults = tmp_path / "grafana-11" / "conf" / "defaults.ini"
        defaults.parent.mkdir()
        defaults.touch()
    link = tmp_path / "grafana"
    link.symlink_to(program)

    expected = program.parents[1] if unpacked else grafana.PACKAGED_HOME
    assert grafana.home_folder(link) == expected


def test_environment_has_all_variables_of_provisioning() -> None:
    """Grafana silently replaces a missing variable by nothing."""
    files = list(grafana.PROVISIONING.rglob("*.yaml"))
    used = {
        name
        for file in files
        for name in re.findall(r"\$(\w+)", file.read_text(encoding="utf-8"))
    }

    assert {file.parent.name for file in files} == {"dashboards", "datasources"}
    assert used == {name for name in ENVIRONMENT if name.startswith("KEYLAG_")}


def test_provisioned_are_data_sources_dashboards_and_generated_alerts(
    tmp_path: Path,
) -> None:
    """A restart brings the files of a newer Keylag."""
    site = replace(SITE, folder=tmp_path)
    for _ in range(2):
        grafana.SERVICE.prepare(site)

    folder = Path(grafana.SERVICE.environment(site)["GF_PATHS_PROVISIONING"])
    made = {str(path.relative_to(folder)) for path in folder.rglob("*.yaml")}
    assert made == {
        "alerting/keylag.yaml",
        "dashboards/keylag.yaml",
        "datasources/keylag.yaml",
    }


def test_dashboards_have_the_generated_uids() -> None:
    files = Path(ENVIRONMENT["KEYLAG_DASHBOARDS"]).glob("*.json")
    uids = {json.loads(file.read_text(encoding="utf-8"))["uid"] for file in files}

    assert uids == {f"keylag-{board.name}" for board in BOARDS}
