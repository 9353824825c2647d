"""Runs the collectors' tests with the Pythons of several Debian releases.

``python -m keylag_dev.pythons [PYTHON...]``; the default is all of PYTHONS.  Each runs
in its own Debian, where the native part is compiled without warnings.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from uv import find_uv_bin

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.install import Installer
from keylag.tools.tool import Build, Tool, ToolError, tail
from keylag.tools.venvs import INDEX_ADVICE
from keylag_dev.debian import INPUT_FILE, DebianRelease
from keylag_dev.matrix import print_line
from keylag_dev.sandbox import debian_command

LOCK_FILE = "locks/collectors.txt"
PACKAGE_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src", "native")
BUILD_OUTPUT = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
UV_VARIABLES = {"UV_NO_CACHE": "1", "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own


def _tools_folder() -> Path:
    return state_folder() / "tools"


@dataclass(frozen=True)
class Python:
    """A version of Python in a Debian release."""

    debian: DebianRelease

    @property
    def version(self) -> str:
        """Return the version as MAJOR.MINOR."""
        return self.debian.python

    @property
    def environment(self) -> Tool:
        """Return the tool that installs Keystone's libraries in that Debian."""
        return Tool(
            name=f"collectors-tests-python{self.version}",
            purpose=f"Keystone's libraries on Python {self.version}",
            inputs=(LOCK_FILE, INPUT_FILE),
            # bin/python is a link that exists only inside that Debian.
            program="pyvenv.cfg",
            make=self._fill,
            advice=INDEX_ADVICE,
            command="make test-pythons",
        )

    @property
    def program(self) -> Path:
        """Return the path of the environment's interpreter."""
        return _tools_folder() / self.environment.name / "bin" / "python"

    def debian_command(
        self, command: Iterable[object], *writable: Path, network: bool = False
    ) -> list[str | Path]:
        """Return the command that runs `command` inside that Debian."""
        root = _tools_folder() / self.debian.tool.name
        cwd = CHECKOUT / "collectors"
        return debian_command(
            root, command, cwd=cwd, writable=writable, network=network
        )

    def _fill(self, build: Build) -> None:
        uv = find_uv_bin()
        base = f"/usr/bin/python{self.version}"
        python = build.folder / "bin" / "python"
        env = {"UV_PYTHON_DOWNLOADS": "never", **UV_VARIABLES}
        lock = CHECKOUT / LOCK_FILE
        for command in (
            [uv, "venv", "--relocatable", "--allow-existing", "-p", base, build.folder],
            [uv, "pip", "install", "--python", python, "--require-hashes", "-r", lock],
        ):
            build.run(self.debian_command(command, build.folder, network=True), env=env)


PYTHONS = {
    python.version: python
    for python in (
        Python(DebianRelease("bookworm", "3.11")),
        Python(DebianRelease("trixie", "3.13")),
        Python(DebianRelease("forky", "3.14")),
    )
}
"""The tested Pythons by version, the oldest first."""


@dataclass
class Outcome:
    """The outcome of the tests with one Python; `seconds` is their duration."""

    python: str
    reason: str = ""
    """Why there are no counts; empty if the tests ran."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = f"{self.passed:>8}{self.failed:>8}{self.skipped:>9}"
        return f"{self.python:<8}{self.reason or f'{counts}{self.seconds:>7.0f} s'}"


HEADINGS = f"{'Python':<8}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>9}"


def compile_collectors(python: Python, scratch: Path) -> None:
    """Install the current collectors; raises ToolError if the compiler complains."""
    source = scratch / "collectors"
    source.mkdir()
    for name in PACKAGE_FILES:
        path = CHECKOUT / "collectors" / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=BUILD_OUTPUT)
        else:
            shutil.copy(path, source)
    build = Build(folder=scratch, log=scratch / "compile.log", cache=_tools_folder())
    install = (
        find_uv_bin(),
        "pip",
        "install",
        "--python",
        python.program,
    )
    # Builds offline with the environment's setuptools.
    options = ("-v", "--offline", "--no-deps", "--no-build-isolation", "--reinstall")
    flags = {"CFLAGS": "-Wall -Wextra -Werror", **UV_VARIABLES}
    try:
        for command in (
            [*install, *options, source],
            [python.program, "-c", "import keylag_otel._native"],
        ):
            build.run(
                python.debian_command(command, _tools_folder(), scratch), env=flags
            )
    except ToolError as error:
        message = f"The native part did not compile: {error}\n{tail(build.log, 60)}"
        raise ToolError(message) from error


def run_tests(python: Python, scratch: Path) -> Outcome:
    """Run the tests of `make test-collectors`, and count their outcomes."""
    report = scratch / "outcome.xml"
    pytest = (python.program, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    command = [*pytest, "-m", "not matrix", f"--junitxml={report}"]
    env = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
    }
    subprocess.run(python.debian_command(command, scratch), check=False, env=env)
    if not report.exists():
        return Outcome(python.version, "failed: pytest crashed", failed=1)
    counts = ET.parse(report).getroot()[0].attrib  # noqa: S314 - pytest's own
    failed = int(counts["failures"]) + int(counts["errors"])
    skipped = int(counts["skipped"])
    passed = int(counts["tests"]) - failed - skipped
    seconds = float(counts["time"])
    return Outcome(python.version, "", passed, failed, skipped, seconds)


def check_python(python: Python) -> Outcome:
    """Install Debian and Python if they are missing, and run the tests."""
    print_line(f"Python {python.version}, of Debian {python.debian.release}")
    installer = Installer(
        _tools_folder(), lambda tool, event: print_line(f"{tool.purpose}: {event}")
    )
    try:
        installer.install([python.debian.tool])
    except ToolError as error:
        print_line(str(error))
        reason = f"Debian {python.debian.release} is unavailable"
        return Outcome(python.version, f"skipped: {reason}")
    temporary = state_folder() / "tmp"
    temporary.mkdir(exist_ok=True)
    try:
        installer.install([python.environment])
        with tempfile.TemporaryDirectory(prefix="python", dir=temporary) as folder:
            compile_collectors(python, Path(folder))
            return run_tests(python, Path(folder))
    except ToolError as error:
        print_line(str(error))
        return Outcome(python.version, "failed: set-up", failed=1)


def main(versions: Sequence[str]) -> int:
    """Test all given Pythons; return the number of failures, or 2 for unknown ones."""
    unknown = set(versions) - set(PYTHONS)
    if unknown:
        print_line(f"Unknown: {', '.join(unknown)}. Pythons: {', '.join(PYTHONS)}.")
        return 2
    outcomes = [check_python(PYTHONS[version]) for version in versions or PYTHONS]
    print_line("\n".join([HEADINGS, *map(str, outcomes)]))
    return sum(outcome.failed > 0 for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
