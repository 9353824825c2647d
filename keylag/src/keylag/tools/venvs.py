"""Virtual environments with the packages of a lock file, and Keylag's own."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from uv import find_uv_bin

from keylag.paths import CHECKOUT, DATA, INSTALLED, SETUP_COMMAND
from keylag.tools.tool import Build, Tool, ToolError

NEWEST_RELEASE = "2026.2"
"""Keystone's default release."""
BUILD_LOCK_FILE = "locks/dev.txt"
NATIVE = CHECKOUT / "collectors" / "native"
COLLECTORS_INPUTS = (
    ()
    if INSTALLED
    else (
        "collectors/pyproject.toml",
        "collectors/setup.py",
        *(f"collectors/native/{file.name}" for file in sorted(NATIVE.glob("*.[ch]"))),
    )
)

COLLECTORS: tuple[str | Path, ...] = (
    ("--no-deps", f"keylag-otel=={version('keylag')}")
    if INSTALLED
    # The same lock file pins the build requirements.
    else (
        *("--no-deps", "--build-constraints", CHECKOUT / BUILD_LOCK_FILE),
        *("-e", CHECKOUT / "collectors"),
    )
)
"""Arguments that install keylag-otel: from the checkout, or this version."""

# The native part of keylag-otel is compiled into the checkout, so builds take turns.
_build_lock = Lock()


def create_venv(
    build: Build,
    folder: Path,
    lock: str,
    extra: Mapping[str, str] = MappingProxyType({}),
    *,
    collectors: bool = False,
) -> None:
    """Create a relocatable environment from a lock file with hashes.

    With `collectors` it has keylag-otel too; `extra` are environment variables for its
    build.  Raises ToolError if a command fails.
    """
    uv = find_uv_bin()
    # Use the running interpreter, and never download another one.
    env = {"UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(folder)}
    build.run(
        [
            uv,
            "venv",
            "-q",
            "--relocatable",
            "--allow-existing",
            "-p",
            base_interpreter(),
            folder,
        ],
        env=env,
    )
    python = folder / "bin" / "python"
    install: list[str | Path] = [uv, "pip", "install", "--python", python]
    build.run([*install, "--require-hashes", "-r", DATA / lock], env=env)
    if collectors:
        with _build_lock:
            build.run([*install, *COLLECTORS], env={**env, **extra})


def base_interpreter() -> str:
    """Return the path of the interpreter that the running environment is based on."""
    return os.path.realpath(sys.executable)


def keystone_version(release: str = NEWEST_RELEASE) -> str:
    """Return Keystone's version in the lock file of a release.

    Raises ToolError if the lock file has no Keystone.
    """
    (lock, *_) = KEYSTONE_TOOLS[release].inputs
    found = re.search(r"^keystone==(\S+)", (DATA / lock).read_text(), re.MULTILINE)
    if found is None:
        message = f"{lock} does not list Keystone"
        raise ToolError(message)
    return found[1]


INDEX_ADVICE = (
    "The packages come from the index in the configuration of pip and uv. "
    f"Check the connection to it, then run `{SETUP_COMMAND}` again."
)


def _collectors_venv(
    name: str, lock: str, purpose: str, program: str, command: str = SETUP_COMMAND
) -> Tool:
    return Tool(
        name=name,
        purpose=purpose,
        inputs=(lock, *COLLECTORS_INPUTS),
        program=program,
        make=lambda build: create_venv(build, build.folder, lock, collectors=True),
        advice=INDEX_ADVICE,
        command=command,
    )


_keystone = partial(_collectors_venv, program="bin/keystone-manage")

KEYSTONE = _keystone(
    "keystone",
    "locks/keystone.txt",
    "Keystone with uWSGI and the collectors",
)
KEYSTONE_TOOLS: Mapping[str, Tool] = {
    "2026.1": _keystone(
        "keystone-2026.1",
        "locks/keystone-2026.1.txt",
        "Keystone 2026.1, for experiments",
        command=f"{SETUP_COMMAND} --with keystone-2026.1",
    ),
    NEWEST_RELEASE: KEYSTONE,
}
"""Keystone by OpenStack release: 2026.1 has Keystone 29, 2026.2 has Keystone 30."""


def collectors_tests_tool(name: str, lock: str, purpose: str) -> Tool:
    """Return the environment for the collectors' tests with a lock file.

    Its build fails if the compiler reports an error or a warning.
    """
    strict = {"KEYLAG_REQUIRE_NATIVE": "1"}
    return replace(
        _collectors_venv(name, lock, purpose, "bin/pytest"),
        make=lambda build: create_venv(
            build, build.folder, lock, strict, collectors=True
        ),
    )


COLLECTORS_TESTS = collectors_tests_tool(
    "collectors-tests",
    "locks/collectors.txt",
    "Keystone's libraries with pytest, for the collectors' tests",
)

BENCH = _keystone(
    "bench",
    "locks/bench.txt",
    "Keystone with every instrumentation that `make bench` compares",
    command="./setup.sh --with bench",
)

RALLY_LOCK = "locks/rally.txt"
RALLY = Tool(
    name="rally",
    purpose="Rally, for laboratories",
    inputs=(RALLY_LOCK,),
    program="bin/rally",
    make=lambda build: create_venv(build, build.folder, RALLY_LOCK),
    advice=INDEX_ADVICE,
    command=f"{SETUP_COMMAND} --with labs",
)

SWIFT = _collectors_venv(
    "swift",
    "locks/swift.txt",
    "Swift with swift-bench and the collectors, for laboratories",
    "bin/swift-proxy-server",
    f"{SETUP_COMMAND} --with labs",
)
