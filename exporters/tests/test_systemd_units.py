"""systemd units agree with the command, the how-tos and systemd-analyze."""

import re
import shlex
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from exporter_helpers import find_program

from keylag_exporters.cli import main
from keylag_exporters.sources import load_source_types

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
HOW_TO = ROOT / "docs" / "how-to"
COMMON = UNITS / "keylag-exporter-.service.d" / "common.conf"
NAMES = [source.name for source in load_source_types()]
PORTS = {source.name: source.port for source in load_source_types()}


def settings(*files):
    """Return the section [Service] of a unit and its drop-ins."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(files)
    return dict(parser["Service"])


def unit(name):
    return UNITS / f"keylag-exporter-{name}.service"


def command_line(name):
    """Return the command line of a unit without the program."""
    return shlex.split(settings(unit(name))["ExecStart"])[1:]


def options(name):
    flags = iter(command_line(name)[1:])
    return dict(zip(flags, flags, strict=True))


def test_each_source_has_a_unit():
    assert sorted(UNITS.glob("*.service")) == sorted(map(unit, NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_unit_uses_existing_options(name):
    help_ = CliRunner().invoke(main, [name, "--help"]).output

    assert command_line(name)[0] == name
    assert set(options(name)) <= set(re.findall(r"--[a-z-]+", help_))


@pytest.mark.parametrize("name", NAMES)
def test_unit_matches_the_command_in_the_how_to(name):
    page = (HOW_TO / f"{name}-exporter.md").read_text()
    command = re.search(rf"^\$ keylag-exporter {name} (.*)", page, re.MULTILINE)[1]
    flags = iter(shlex.split(command))
    run = options(name)
    listen = run.pop("--listen")
    secret = run.pop("--password-file", None)
    shown = dict(zip(flags, flags, strict=True))
    credential = settings(unit(name)).get("LoadCredential", ":").partition(":")[2]

    assert shown.pop("--password-file", "") == credential
    assert secret in {None, "${CREDENTIALS_DIRECTORY}/password"}
    assert run == shown
    assert listen == f"127.0.0.1:{PORTS[name]}"
    assert f"http://{listen}/metrics" in page


def test_state_file_is_in_the_state_directory():
    folder = settings(unit("slow-log"))["StateDirectory"]

    assert Path(options("slow-log")["--state"]).parent == Path("/var/lib") / folder


def test_service_user_is_declared_in_sysusers():
    (made,) = re.findall(r"^u (\S+)", (UNITS / "keylag.conf").read_text(), re.MULTILINE)

    assert settings(COMMON)["User"] == made


@pytest.fixture
def installed(tmp_path):
    """The units with the exporter of this environment."""
    copy = tmp_path / "system"
    shutil.copytree(UNITS, copy)
    ours = Path(sys.executable).with_name("keylag-exporter")
    for path in copy.glob("*.service"):
        text = path.read_text().replace("/opt/keylag/bin/keylag-exporter", str(ours))
        path.write_text(text)
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_systemd_analyze_reports_nothing(installed, name):
    analyze = find_program("systemd-analyze")
    done = subprocess.run(
        [analyze, "verify", "--man=no", installed / unit(name).name],
        capture_output=True,
        check=False,
        text=True,
    )

    said = [line for line in done.stderr.splitlines() if "keylag" in line]
    assert (done.returncode, said) == (0, [])


def test_deploy_page_lists_every_port():
    page = (HOW_TO / "deploy.md").read_text()

    for name, port in PORTS.items():
        assert f"| {port} | `{name}` |" in page
        assert f"]({name}-exporter.md)" in page


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]


def test_pages_name_the_command_without_its_folder():
    assert [page for page in PAGES if "/bin/keylag " in page.read_text()] == []
