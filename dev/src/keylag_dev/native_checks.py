"""Check the native part with sanitizers, reference counts and the pure part.

``python -m keylag_dev.native_checks [CHECK...]``; without one, all of them.  Each
compiles a copy of the collectors in its own way and runs their tests against it.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keylag.state import CHECKOUT, state_folder
from keylag.tools.base import ToolError
from keylag.tools.venvs import COLLECTORS_TESTS
from keylag_dev.matrix import environment, say

STRICT = ("-Wall", "-Wextra", "-Werror")
DIFFERENTIAL = "tests/test_native_differential.py"
REFERENCES = "tests/test_native_references.py"
SAFETY = "tests/test_native_safety.py"
UNITS = tuple(
    f"tests/test_{name}.py"
    for name in (
        *("aggregate", "aggregator", "request", "response", "trace_tree", "wrappers"),
    )
)
QUICK = {"HYPOTHESIS_EXAMPLES": "20"}
"""For checks with another main purpose."""

_INTERPRETER = """
import sysconfig as s
print(s.get_path("include"), s.get_config_var("EXT_SUFFIX"))
"""


@dataclass(frozen=True)
class Check:
    """Compiler flags for the native part, and the tests to run with it."""

    purpose: str
    tests: tuple[str, ...]
    flags: tuple[str, ...] = ("-O2",)
    settings: Mapping[str, str] = field(default_factory=dict)
    preloads: str = ""
    """The library that the compiler wants loaded before all others."""
    interpreter: str = ""
    """A program on the PATH; the interpreter of the collectors' tests without one."""


_SANITIZED = (
    *("-O1", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
_SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

CHECKS: Mapping[str, Check] = {
    "memory": Check(
        "AddressSanitizer around each Python object, with the tests of the native part",
        tests=(*UNITS, REFERENCES, SAFETY, DIFFERENTIAL),
        flags=_SANITIZED,
        # Python's own allocator would hide the borders of objects.
        settings={**_SANITIZERS, "PYTHONMALLOC": "malloc", **QUICK},
        preloads="libasan.so",
    ),
    "sanitizers": Check(
        "AddressSanitizer and UndefinedBehaviorSanitizer, with all collectors' tests",
        # Sanitizers keep freed memory, so resident memory is meaningless; and the copy
        # lacks the patch of OSProfiler.
        tests=(
            *("-m", "not matrix", "tests"),
            *("--ignore=tests/test_memory.py", "--ignore=tests/test_upstream.py"),
        ),
        flags=_SANITIZED,
        settings={**_SANITIZERS, **QUICK},
        preloads="libasan.so",
    ),
    "references": Check(
        "reference counts over repeated runs, in a debug build of Python",
        tests=(REFERENCES, SAFETY, DIFFERENTIAL),
        settings=QUICK,
        interpreter="python3-dbg",
    ),
    "differential": Check(
        "2000 random sequences of operations, in Python and in C",
        tests=(DIFFERENTIAL,),
        settings={"HYPOTHESIS_EXAMPLES": "2000"},
    ),
}


def compile_into(folder: Path, python: str | Path, flags: Sequence[str]) -> None:
    """Copy the collectors into a folder and compile the native part there.

    Raises ToolError with the compiler's words if it gives as much as a warning.
    """
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "build", "*.egg-info")
    shutil.copytree(CHECKOUT / "collectors", folder, ignore=ignored)
    include, suffix = subprocess.check_output(
        [python, "-c", _INTERPRETER], text=True
    ).split()
    sources = sorted((folder / "native").glob("*.c"))
    target = folder / "src" / "keylag_otel" / f"_native{suffix}"
    command = ["gcc", "-shared", "-fPIC", *STRICT, *flags, f"-I{include}"]
    ended = subprocess.run(
        [*command, *sources, "-o", target], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        message = (
            f"The native part did not compile with {' '.join(flags)}:\n{ended.stderr}"
        )
        raise ToolError(message)


def _settings(check: Check, folder: Path, tested: Path) -> dict[str, str]:
    packages = next(tested.parent.parent.glob("lib/python3*/site-packages"))
    settings = {
        **check.settings,
        "PYTHONPATH": os.pathsep.join(map(str, (folder / "src", packages))),
    }
    if check.preloads:
        found = subprocess.check_output(
            ["gcc", f"-print-file-name={check.preloads}"], text=True
        )
        settings["LD_PRELOAD"] = found.strip()
    return settings


def run(name: str) -> int:
    """Run one check; return the exit code of its tests."""
    check = CHECKS[name]
    say(f"{name}: {check.purpose}")
    tested = environment(COLLECTORS_TESTS)
    python = shutil.which(check.interpreter) if check.interpreter else str(tested)
    if python is None:
        message = f"{check.interpreter} is missing. Run `./setup.sh --with native`."
        raise ToolError(message)
    folder = state_folder() / "tools" / f"native-{name}"
    compile_into(folder, python, check.flags)
    command = [python, "-X", "faulthandler", "-m", "pytest", "-q"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *check.tests],
        cwd=folder,
        env={**os.environ, **_settings(check, folder, tested)},
        check=False,
    ).returncode


def _timed(name: str) -> str:
    started = time.monotonic()
    code = run(name)
    outcome = "passed" if code == 0 else f"FAILED with code {code}"
    return f"{name:14}{outcome:24}{time.monotonic() - started:6.0f} s"


def main(names: Sequence[str]) -> int:
    """Run checks, also when one fails; return how many did."""
    unknown = set(names) - set(CHECKS)
    if unknown:
        say(f"There is no {', '.join(unknown)}; there are {', '.join(CHECKS)}.")
        return 2
    rows = [_timed(name) for name in names or CHECKS]
    say("\n".join(rows))
    return sum("FAILED" in row for row in rows)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        sys.exit(str(error))
