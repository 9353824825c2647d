"""`keylag-otel check`: seams, versions, variables and advice."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path

import pytest

from keylag_otel import __main__ as command
from keylag_otel import check, runtime
from keylag_otel.package import TESTED_PYTHONS
from keylag_otel.runtime import Runtime
from keylag_otel.seam import Seam
from keylag_otel.wrappers import timed

SQL = (timed("sql"),)
KEYLAG_OTEL = Path(sys.executable).with_name("keylag-otel")


@pytest.fixture(autouse=True)
def library(monkeypatch) -> types.ModuleType:
    """A host library of one method."""
    module = types.ModuleType("keylag_host")

    class Thing:
        def method(self, renamed: str) -> str:
            return renamed

    module.Thing = Thing
    monkeypatch.setitem(sys.modules, "keylag_host", module)
    return module


@pytest.mark.parametrize(
    ("path", "expects", "state"),
    [
        ("Thing.method", (), "bound"),
        ("Thing.method", ("self", "renamed"), "bound"),
        ("Thing.method", ("self", "token"), "changed"),
        ("Thing.gone", (), "missing"),
        ("Gone.method", (), "missing"),
    ],
)
def test_a_seam_is_bound_changed_or_missing(path, expects, state) -> None:
    (finding,) = check.find_seams([Seam("keylag_host", path, SQL, expects=expects)])

    assert (finding.seam, finding.state) == (f"keylag_host:{path}", state)


def test_reason_of_a_changed_seam_names_the_missing_parameter() -> None:
    seam = Seam("keylag_host", "Thing.method", SQL, expects=("self", "token"))

    (finding,) = check.find_seams([seam])

    assert finding.reason == "it no longer takes token"


def test_a_module_that_cannot_be_imported_is_missing_with_its_reason() -> None:
    (finding,) = check.find_seams([Seam("keylag_no_such_module", "f", SQL)])

    assert finding.state == "missing"
    assert "keylag_no_such_module" in finding.reason


def test_check_restores_the_originals(library) -> None:
    method, argv = library.Thing.method, sys.argv

    check.find_seams([Seam("keylag_host", "Thing.method", SQL)])

    assert library.Thing.method is method
    assert sys.argv is argv
    assert not logging.getLogger("keylag_otel").disabled


@pytest.mark.parametrize(
    ("seam", "code"),
    [
        (Seam("keylag_host", "Thing.method", SQL), 0),
        (Seam("keylag_host", "gone", SQL), 1),
        (Seam("keylag_host", "gone", SQL, optional=True), 0),
        (Seam("keylag_host", "Thing.method", SQL, optional=True, expects=("it",)), 1),
    ],
    ids=["bound", "missing", "missing, optional", "changed, optional"],
)
def test_exit_code_ignores_missing_optional_seams(
    monkeypatch, capsys, seam, code
) -> None:
    monkeypatch.setattr(command, "HOSTS", {"keystone": (seam,)})

    assert command.main(["check"]) == code
    assert command.main(["check", "--output", "json"]) == code
    assert ("NOT OK" in capsys.readouterr().out) == bool(code)


def test_variables_are_shown_without_credentials() -> None:
    shown = check.relevant_variables(
        {
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=canary",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://canary:canary@collector:4318",
            "KEYLAG_SERVER_TIMING": "true",
            "KEYLAG_SERVER_TIMING_KEYS": "canary",
            "HOME": "/canary",
        }
    )

    assert shown == {
        "KEYLAG_SERVER_TIMING": "true",
        "KEYLAG_SERVER_TIMING_KEYS": "(set)",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "(set)",
    }


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OTEL_METRICS_EXPORTER": "none"}, "disables the export"),
        ({"OTEL_SDK_DISABLED": "TRUE"}, "disables all metrics"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"}, "no metrics exporter 'smoke'"),
        ({}, "enable-threads"),
    ],
)
def test_advice_about_the_export(environ, said) -> None:
    assert said in "\n".join(check.check([], environ).advice)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"keystone": None, "keystonemiddleware": None}, "Neither Keystone nor"),
        ({"opentelemetry-sdk": None}, "install keylag-otel[otlp]"),
    ],
)
def test_advice_names_packages_to_install(monkeypatch, versions, said) -> None:
    monkeypatch.setattr(
        check, "installed_version", lambda name: versions.get(name, "1.0")
    )

    assert said in "\n".join(check.check([], {}).advice)


@pytest.mark.parametrize(
    ("compiled", "said"), [(True, "in C."), (False, "install gcc")]
)
def test_advice_names_the_native_or_pure_part(monkeypatch, compiled, said) -> None:
    monkeypatch.setattr(check, "IS_NATIVE", compiled)

    (line,) = check._cost_advice()
    assert said in line


def test_report_has_python_version_and_support(capsys) -> None:
    command.main(["check"])
    text = capsys.readouterr().out
    command.main(["check", "--output", "json"])
    report = json.loads(capsys.readouterr().out)["python"]

    version = "{}.{}.{}".format(*sys.version_info)
    assert report["version"] == version
    assert report["tested"] == (version.rpartition(".")[0] in TESTED_PYTHONS)
    assert text.startswith(f"Python {version} (")


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (Runtime("3.14.1", tested=True, free_threaded=False, gil=True), ""),
        (
            Runtime("3.8.1", tested=False, free_threaded=False, gil=True),
            "not tested on this Python",
        ),
        (
            Runtime("3.14.1", tested=True, free_threaded=True, gil=True),
            "GIL on",
        ),
        (Runtime("3.14.1", tested=True, free_threaded=True, gil=False), "GIL off"),
    ],
    ids=["tested", "not tested", "free-threaded with GIL", "free-threaded"],
)
def test_advice_about_unsupported_pythons(python, said) -> None:
    lines = list(runtime.advice(python))

    assert len(lines) == bool(said)
    assert said in "\n".join(lines)


def test_variable_selects_the_pure_part() -> None:
    code = "from keylag_otel.request_timer import IS_NATIVE; print(IS_NATIVE)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KEYLAG_PURE_PYTHON": "true"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.strip() == "False"


def test_real_keystone_passes_the_check() -> None:
    result = subprocess.run(
        [KEYLAG_OTEL, "check", "--output", "json"], capture_output=True, check=False
    )

    report = json.loads(result.stdout)
    lost = [s for s in report["seams"] if s["state"] != "bound" and not s["optional"]]
    assert lost == []
    assert (result.returncode, report["ok"]) == (0, True)
    assert len(report["seams"]) == sum(map(len, command.HOSTS.values()))
    assert report["versions"]["keystone"]


def test_a_service_without_a_keystone_has_the_seams_of_auth_token(
    monkeypatch, capsys
) -> None:
    monkeypatch.setattr(
        command, "installed_version", lambda name: None if name == "keystone" else "1.0"
    )

    assert command.main(["check", "--output", "json"]) == 0

    seams = json.loads(capsys.readouterr().out)["seams"]
    assert len(seams) == len(command.HOSTS["keystonemiddleware"])
    assert "keystonemiddleware.auth_token:AuthProtocol.fetch_token" in {
        each["seam"] for each in seams
    }


def test_check_runs_as_module() -> None:
    command = [sys.executable, "-m", "keylag_otel", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "usage: keylag-otel" in result.stdout


#: Warnings of the libraries of old releases are not output of the command.
QUIET = {"PYTHONWARNINGS": "ignore"}


def run_check(*words: str, output: str = os.devnull) -> tuple[int, str]:
    """Run the installed command; return its exit code and its error output."""
    with Path(output).open("w") as stdout:
        done = subprocess.run(
            [KEYLAG_OTEL, *words],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
            env={**os.environ, **QUIET},
        )
    return done.returncode, done.stderr


@pytest.mark.newest
def test_full_disk_is_reported_without_traceback(monkeypatch) -> None:
    short = run_check("check", output="/dev/full")
    monkeypatch.setenv("KEYLAG_DEBUG", "1")
    code, long = run_check("check", output="/dev/full")

    assert short == (1, "Error: No space left on device.\n")
    assert code == 1
    assert "Traceback" in long
    assert long.endswith(short[1])


def test_wrong_usage_exits_with_2() -> None:
    assert run_check()[0] == 2
    assert run_check("chek")[0] == 2


@pytest.mark.newest
def test_closed_pipe_prints_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [KEYLAG_OTEL, "check"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        env={**os.environ, **QUIET},
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (1, b"")


def test_version_is_that_of_the_package() -> None:
    done = subprocess.run([KEYLAG_OTEL, "--version"], capture_output=True, check=True)

    assert done.stdout.decode() == f"keylag-otel {version('keylag-otel')}\n"
