"""Shows a fault of a library that Keystone uses, and that its fix cures it.

    /path/to/keystone/bin/python run.py FIX

runs `reproduce.py` in the folder of the fix twice: with the installed module, and with
a copy to which `fix.ed` was applied.  It needs Keystone's environment only, and changes
nothing there.  The exit code is 0 if the first run finds the fault and the second none.
"""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


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


def write_fixed(name: str, fix: Fix, folder: Path) -> Path:
    """Write a copy of the installed module with the fix; return its path."""
    spec = importlib.util.find_spec(fix.module)
    if spec is None or spec.origin is None:
        sys.exit(f"{fix.module} is not installed.")
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
    script = (HERE / name / "fix.ed").read_text(encoding="utf-8").splitlines()
    fixed = folder / "fixed.py"
    fixed.write_text("\n".join([*apply_script(lines, script), ""]), encoding="utf-8")
    return fixed


def load(name: str, file: Path) -> None:
    """Load a file in place of the installed module of a name."""
    package, _, attribute = name.rpartition(".")
    parent = importlib.import_module(package)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        sys.exit(f"{file} is no module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(parent, attribute, module)


def find_fault(name: str, file: Path | None) -> str:
    """Return what the fault does, in another process; empty without a fault."""
    command = [sys.executable, __file__, name, "--once", *([str(file)] if file else [])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{name} could not be reproduced:\n{ended.stderr}")
    return ended.stdout.strip()


def run_once(name: str, files: list[str]) -> None:
    """Print what the fault does, with a file in place of the installed module."""
    for file in files:
        load(FIXES[name].module, Path(file))
    print(runpy.run_path(str(HERE / name / "reproduce.py"))["find_fault"]())


def main() -> None:
    """Run a fix that is named on the command line."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in FIXES:
        sys.exit(f"Name one of {', '.join(FIXES)}.")
    if sys.argv[2:3] == ["--once"]:
        run_once(name, sys.argv[3:])
        return
    # Of modules that the library imports on its way.
    warnings.simplefilter("ignore")
    fix = FIXES[name]
    found = version(fix.distribution)
    print(f"{fix.distribution} {found}, {fix.module}")
    if found != fix.version:
        sys.exit(f"The fix is for {fix.version}, so it was not tried.")
    fault = find_fault(name, None)
    print(f"installed: {fault or 'no fault'}")
    with tempfile.TemporaryDirectory() as folder:
        left = find_fault(name, write_fixed(name, fix, Path(folder)))
    print(f"fixed: {left or 'no fault'}")
    sys.exit(not fault or bool(left))


if __name__ == "__main__":
    main()
