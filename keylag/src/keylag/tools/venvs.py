"""Virtual environments with exactly what a lock file lists, and our packages."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from keylag.state import CHECKOUT
from keylag.tools.base import Build, Tool, ToolError

NEWEST = "2026.2"
"""The release that Keylag runs unless it is asked for another one."""
BUILD_LOCK = "locks/dev.txt"
NATIVE = CHECKOUT / "collectors" / "native"
COLLECTORS = (
    "collectors/pyproject.toml",
    "collectors/setup.py",
    *(f"collectors/native/{file.name}" for file in sorted(NATIVE.glob("*.[ch]"))),
)

#: The collectors' C is compiled into the checkout, for all environments.
_one_at_a_time = Lock()


def uv_program(cache: Path) -> Path:
    """Return the uv that the bootstrap installed; raises ToolError without it."""
    program = cache / "uv" / "bin" / "uv"
    if not program.exists():
        message = f"{program} is missing. Run `make setup`, which installs it."
        raise ToolError(message)
    return program


def fill(
    build: Build,
    folder: Path,
    lock: str,
    editable: tuple[str, ...] = (),
    extra: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Make a movable environment from a hash-checked lock, our packages on top.

    `extra` are more variables for what builds our packages.
    """
    uv = uv_program(build.cache)
    # Never another interpreter than the one that runs us, never a download of one.
    env = {"UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(folder)}
    build.run(
        [uv, "venv", "-q", "--relocatable", "--allow-existing", "-p", base(), folder],
        env=env,
    )
    python = folder / "bin" / "python"
    install: list[str | Path] = [uv, "pip", "install", "--python", python]
    build.run([*install, "--require-hashes", "-r", CHECKOUT / lock], env=env)
    # What builds our packages is pinned by the same lock.
    ours: list[str | Path] = [
        *install,
        "--no-deps",
        "--build-constraints",
        CHECKOUT / BUILD_LOCK,
    ]
    with _one_at_a_time:
        for package in editable:
            build.run([*ours, "-e", CHECKOUT / package], env={**env, **extra})


def base() -> str:
    """Return the interpreter beneath the environment that runs us."""
    return os.path.realpath(sys.executable)


def keystone_version(release: str = NEWEST) -> str:
    """Return the version of Keystone that a release's lock file holds."""
    (lock, *_) = KEYSTONES[release].inputs
    found = re.search(r"^keystone==(\S+)", (CHECKOUT / lock).read_text(), re.MULTILINE)
    if found is None:
        message = f"{lock} does not hold Keystone"
        raise ToolError(message)
    return found[1]


ADVICE = (
    "The packages come from the index that pip and uv are configured to use. "
    "Check that it can be reached, then run `make setup` again."
)


def _with_collectors(
    name: str, lock: str, purpose: str, program: str, command: str = "make setup"
) -> Tool:
    """Return an environment of a lock file and the collectors."""
    return Tool(
        name=name,
        purpose=purpose,
        inputs=(lock, *COLLECTORS),
        program=program,
        make=lambda build: fill(build, build.folder, lock, ("collectors",)),
        advice=ADVICE,
        command=command,
    )


_keystone = partial(_with_collectors, program="bin/keystone-manage")

KEYSTONE = _keystone(
    "keystone",
    "locks/keystone.txt",
    "Keystone with uWSGI and the collectors",
)
KEYSTONES: Mapping[str, Tool] = {
    "2026.1": _keystone(
        "keystone-2026.1",
        "locks/keystone-2026.1.txt",
        "Keystone 2026.1, for experiments",
        command="./setup.sh --with keystone-2026.1",
    ),
    NEWEST: KEYSTONE,
}
"""Keystone by the release of OpenStack: 29 is 2026.1, 30 is 2026.2."""


def collectors_tests(name: str, lock: str, purpose: str) -> Tool:
    """Return an environment of Keystone's libraries that tests collectors.

    It is not made if the collectors' C does not compile, or warns.
    """
    strict = {"KEYLAG_REQUIRE_NATIVE": "1"}
    return replace(
        _with_collectors(name, lock, purpose, "bin/pytest"),
        make=lambda build: fill(build, build.folder, lock, ("collectors",), strict),
    )


COLLECTORS_TESTS = collectors_tests(
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
