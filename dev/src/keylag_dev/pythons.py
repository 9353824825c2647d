"""Run the collectors' tests on each Python that a release of Debian has.

``python -m keylag_dev.pythons [PYTHON...]``; without one, all of them.  Each runs
inside its own Debian, with the C part compiled there without a warning.
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

from keylag.state import CHECKOUT, state_folder
from keylag.tools.base import Build, Tool, ToolError, tail
from keylag.tools.install import Installer
from keylag.tools.venvs import ADVICE, uv_program
from keylag_dev.debian import SOURCE, Debian
from keylag_dev.matrix import say
from keylag_dev.sandbox import inside

LOCK = "locks/collectors.txt"
PACKAGE = ("pyproject.toml", "setup.py", "README.md", "src", "native")
MADE = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
UV = {"UV_NO_CACHE": "1", "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own


def _tools() -> Path:
    return state_folder() / "tools"


@dataclass(frozen=True)
class Python:
    """A Python, and the Debian that has it."""

    debian: Debian

    @property
    def version(self) -> str:
        """Return its version, the first two numbers."""
        return self.debian.python

    @property
    def environment(self) -> Tool:
        """Return Keystone's libraries, installed inside the Debian."""
        return Tool(
            name=f"collectors-tests-python{self.version}",
            purpose=f"Keystone's libraries on Python {self.version}",
            inputs=(LOCK, SOURCE),
            # Its interpreter is a link to what only the Debian has.
            program="pyvenv.cfg",
            make=self._fill,
            advice=ADVICE,
            command="make test-pythons",
        )

    @property
    def program(self) -> Path:
        """Return the environment's interpreter."""
        return _tools() / self.environment.name / "bin" / "python"

    def inside(
        self, command: Iterable[object], *writable: Path, network: bool = False
    ) -> list[str | Path]:
        """Return the command that runs another one in the Debian."""
        root = _tools() / self.debian.tool.name
        cwd = CHECKOUT / "collectors"
        return inside(root, command, cwd=cwd, writable=writable, network=network)

    def _fill(self, build: Build) -> None:
        uv = uv_program(build.cache)
        base = f"/usr/bin/python{self.version}"
        python = build.folder / "bin" / "python"
        env = {"UV_PYTHON_DOWNLOADS": "never", **UV}
        lock = CHECKOUT / LOCK
        for command in (
            [uv, "venv", "--relocatable", "--allow-existing", "-p", base, build.folder],
            [uv, "pip", "install", "--python", python, "--require-hashes", "-r", lock],
        ):
            build.run(self.inside(command, build.folder, network=True), env=env)


PYTHONS = {
    python.version: python
    for python in (
        Python(Debian("bookworm", "3.11")),
        Python(Debian("trixie", "3.13")),
        Python(Debian("forky", "3.14")),
    )
}
"""Which are tested, the oldest first."""


@dataclass
class Outcome:
    """What became of one Python's tests."""

    python: str
    said: str = ""
    """Why there are no counts."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = f"{self.passed:>8}{self.failed:>8}{self.skipped:>9}"
        return f"{self.python:<8}{self.said or f'{counts}{self.seconds:>7.0f} s'}"


HEADINGS = f"{'Python':<8}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>9}"


def compile_collectors(python: Python, scratch: Path) -> None:
    """Install the collectors as they are now; raises ToolError unless C compiles."""
    source = scratch / "collectors"
    source.mkdir()
    for name in PACKAGE:
        path = CHECKOUT / "collectors" / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=MADE)
        else:
            shutil.copy(path, source)
    build = Build(folder=scratch, log=scratch / "compile.log", cache=_tools())
    install = (uv_program(_tools()), "pip", "install", "--python", python.program)
    # With the environment's own setuptools, and nothing from anywhere else.
    how = ("-v", "--offline", "--no-deps", "--no-build-isolation", "--reinstall")
    flags = {"CFLAGS": "-Wall -Wextra -Werror", **UV}
    try:
        for command in (
            [*install, *how, source],
            [python.program, "-c", "import keylag_otel._native"],
        ):
            build.run(python.inside(command, _tools(), scratch), env=flags)
    except ToolError as error:
        message = f"The C part did not compile: {error}\n{tail(build.log, 60)}"
        raise ToolError(message) from error


def test(python: Python, scratch: Path) -> Outcome:
    """Run the tests that `make test-collectors` runs, and count them."""
    report = scratch / "outcome.xml"
    pytest = (python.program, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    command = [*pytest, "-m", "not matrix", f"--junitxml={report}"]
    env = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
    }
    subprocess.run(python.inside(command, scratch), check=False, env=env)
    if not report.exists():
        return Outcome(python.version, "failed: pytest did not end", failed=1)
    counts = ET.parse(report).getroot()[0].attrib  # noqa: S314 - pytest's own
    failed = int(counts["failures"]) + int(counts["errors"])
    skipped = int(counts["skipped"])
    passed = int(counts["tests"]) - failed - skipped
    seconds = float(counts["time"])
    return Outcome(python.version, "", passed, failed, skipped, seconds)


def run(python: Python) -> Outcome:
    """Make what is missing, then test."""
    say(f"Python {python.version}, of Debian {python.debian.release}")
    installer = Installer(_tools(), lambda tool, event: say(f"{tool.purpose}: {event}"))
    try:
        installer.install([python.debian.tool])
    except ToolError as error:
        say(str(error))
        reason = f"Debian {python.debian.release} cannot be had here"
        return Outcome(python.version, f"skipped: {reason}")
    temporary = state_folder() / "tmp"
    temporary.mkdir(exist_ok=True)
    try:
        installer.install([python.environment])
        with tempfile.TemporaryDirectory(prefix="python", dir=temporary) as folder:
            compile_collectors(python, Path(folder))
            return test(python, Path(folder))
    except ToolError as error:
        say(str(error))
        return Outcome(python.version, "failed: it could not be set up", failed=1)


def main(versions: Sequence[str]) -> int:
    """Run them all, also when one fails; return how many did."""
    unknown = set(versions) - set(PYTHONS)
    if unknown:
        say(f"There is no {', '.join(unknown)}; there are {', '.join(PYTHONS)}.")
        return 2
    outcomes = [run(PYTHONS[version]) for version in versions or PYTHONS]
    say("\n".join([HEADINGS, *map(str, outcomes)]))
    return sum(outcome.failed > 0 for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
