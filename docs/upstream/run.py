"""Shows a fault of a library that Keystone uses, and that its fix cures it.

    /path/to/keystone/bin/python run.py FIX

runs `reproduce.py` in the folder of the fix twice: with the installed module, and with
`fix.ed` applied to it as it is imported.  It needs Keystone's environment only, and
changes nothing there.  The exit code is 0 if the first run finds the fault and the
second none.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
INSTALLED, FIXED = "--installed", "--fixed"


class Fix(NamedTuple):
    """The module that a fix is for."""

    module: str
    distribution: str
    version: str


FIXES = {
    "redis-request-cache": Fix(
        "keystone.common.cache._context_cache", "keystone", "30.0.0"
    ),
    "stale-request-context": Fix(
        "keystone.server.flask.request_processing.middleware.auth_context",
        "keystone",
        "30.0.0",
    ),
    "revocation-chains": Fix("keystone.revoke.backends.sql", "keystone", "30.0.0"),
    "pymemcache-timeout": Fix(
        "dogpile.cache.backends.memcached", "dogpile.cache", "1.5.0"
    ),
    "last-active-retry": Fix(
        "keystone.identity.shadow_backends.sql", "keystone", "30.0.0"
    ),
    "scrypt-rounds": Fix("keystone.common.password_hashing", "keystone", "30.0.0"),
}


def apply_script(lines: list[str], script: list[str]) -> list[str]:
    """Apply an `ed` script, as `diff -e` writes it: from the last line to the first."""
    lines, commands = list(lines), iter(script)
    for command in commands:
        first, _, last = command[:-1].partition(",")
        begin, end = int(first) - 1, int(last or first)
        new = list(iter(commands.__next__, ".")) if command[-1] in "ac" else []
        lines[end if command[-1] == "a" else begin : end] = new
    return lines


class FixedLoader(SourceFileLoader):
    """Loads the installed file of a module with the changes of an `ed` script."""

    def __init__(self, name: str, path: str, script: list[str]) -> None:
        super().__init__(name, path)
        self._script = script

    def get_code(self, fullname: str) -> Any:
        """Compile the fixed source; a stored bytecode is that of the installed one."""
        lines = str(self.get_source(fullname)).splitlines()
        text = "\n".join([*apply_script(lines, self._script), ""])
        return self.source_to_code(text.encode(), self.path)


class FixFinder:
    """Finds the module of a fix, and has it loaded with the fix."""

    def __init__(self, name: str) -> None:
        self._module = FIXES[name].module
        file = HERE / name / "fix.ed"
        self._script = file.read_text(encoding="utf-8").splitlines()

    def find_spec(
        self, name: str, path: Sequence[str] | None, _: Any = None
    ) -> ModuleSpec | None:
        """Return the installed module with another loader; None for others."""
        found = PathFinder.find_spec(name, path) if name == self._module else None
        if found and found.origin:
            found.loader = FixedLoader(name, found.origin, self._script)
        return found


def install(name: str) -> None:
    """Apply a fix to its module when that is imported, which must be later."""
    if FIXES[name].module in sys.modules:
        sys.exit(f"{FIXES[name].module} is imported already, without the fix.")
    finder: Any = FixFinder(name)
    sys.meta_path.insert(0, finder)


def find_fault(name: str, mode: str) -> str:
    """Return what the fault does, in another process; empty without a fault."""
    command = [sys.executable, __file__, name, mode]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{name} could not be reproduced:\n{ended.stderr}")
    return ended.stdout.strip()


def run_once(name: str, mode: str) -> None:
    """Print what the fault does, as installed or fixed."""
    if mode == FIXED:
        install(name)
    print(runpy.run_path(str(HERE / name / "reproduce.py"))["find_fault"]())


def main() -> None:
    """Run a fix that is named on the command line."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in FIXES:
        sys.exit(f"Name one of {', '.join(FIXES)}.")
    if mode := next(iter(sys.argv[2:]), ""):
        run_once(name, mode)
        return
    # Of modules that the library imports on its way.
    warnings.simplefilter("ignore")
    fix = FIXES[name]
    found = version(fix.distribution)
    print(f"{fix.distribution} {found}, {fix.module}")
    if found != fix.version:
        sys.exit(f"The fix is for {fix.version}, so it was not tried.")
    fault = find_fault(name, INSTALLED)
    print(f"installed: {fault or 'no fault'}")
    left = find_fault(name, FIXED)
    print(f"fixed: {left or 'no fault'}")
    sys.exit(not fault or bool(left))


if __name__ == "__main__":
    main()
