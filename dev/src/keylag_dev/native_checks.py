"""Checks the native part of keylag-otel with sanitizers and differential tests.

``python -m keylag_dev.native_checks [CHECK...]``; the default is all of CHECKS.  Each
check compiles a copy of the collectors with its own flags and runs tests with it.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.tool import ToolError
from keylag.tools.venvs import COLLECTORS_TESTS
from keylag_dev.matrix import install_environment, print_line

WARNING_FLAGS = ("-Wall", "-Wextra", "-Werror")
DIFFERENTIAL_TESTS = "tests/test_native_differential.py"
REFERENCE_TESTS = "tests/test_native_references.py"
SAFETY_TESTS = "tests/test_native_safety.py"
UNIT_TESTS = tuple(
    f"tests/test_{name}.py"
    for name in (
        *("aggregate", "aggregator", "request", "response", "trace_tree", "wrappers"),
    )
)
FEW_EXAMPLES = {"HYPOTHESIS_EXAMPLES": "20"}
"""Settings for checks with another focus than random sequences."""

_PRINT_BUILD_SETTINGS = """
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
    """Library of the compiler to put into LD_PRELOAD."""
    interpreter: str = ""
    """Name of an interpreter; empty for that of the collectors' tests."""


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
        "AddressSanitizer for each Python object, with the tests of the native part",
        tests=(*UNIT_TESTS, REFERENCE_TESTS, SAFETY_TESTS, DIFFERENTIAL_TESTS),
        flags=_SANITIZED,
        # Python's own allocator hides the bounds of objects.
        settings={**_SANITIZERS, "PYTHONMALLOC": "malloc", **FEW_EXAMPLES},
        preloads="libasan.so",
    ),
    "sanitizers": Check(
        "AddressSanitizer and UndefinedBehaviorSanitizer, with all collectors' tests",
        # Sanitizers delay freeing, so test_memory.py does not apply.  greenlet copies
        # stacks with the guard zones in them, which AddressSanitizer reports.  The copy
        # lacks the files that test_upstream.py and test_deploy_files.py test.
        tests=(
            *("-m", "not matrix", "tests"),
            *("--ignore=tests/test_memory.py", "--ignore=tests/test_greenlets.py"),
            "--ignore=tests/test_upstream.py",
            "--ignore=tests/test_deploy_files.py",
        ),
        flags=_SANITIZED,
        settings={**_SANITIZERS, **FEW_EXAMPLES},
        preloads="libasan.so",
    ),
    "references": Check(
        "reference counts over repeated runs, with a debug build of Python",
        tests=(REFERENCE_TESTS, SAFETY_TESTS, DIFFERENTIAL_TESTS),
        settings=FEW_EXAMPLES,
        interpreter="python3-dbg",
    ),
    "differential": Check(
        "2000 random sequences of operations, in the pure and in the native part",
        tests=(DIFFERENTIAL_TESTS,),
        settings={"HYPOTHESIS_EXAMPLES": "2000"},
    ),
}


def compile_native(folder: Path, python: str | Path, flags: Sequence[str]) -> None:
    """Copy the collectors to a folder and compile the native part there.

    Raises ToolError with the compiler's output for an error or a warning.
    """
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "build", "*.egg-info")
    shutil.copytree(CHECKOUT / "collectors", folder, ignore=ignored)
    include, suffix = subprocess.check_output(
        [python, "-c", _PRINT_BUILD_SETTINGS], text=True
    ).split()
    sources = sorted((folder / "native").glob("*.c"))
    target = folder / "src" / "keylag_otel" / f"_native{suffix}"
    command = ["gcc", "-shared", "-fPIC", *WARNING_FLAGS, *flags, f"-I{include}"]
    ended = subprocess.run(
        [*command, *sources, "-o", target], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        message = (
            f"The native part did not compile with {' '.join(flags)}:\n{ended.stderr}"
        )
        raise ToolError(message)


def _test_environment(check: Check, folder: Path, tested: Path) -> dict[str, str]:
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


def run_check(name: str) -> int:
    """Run one check; return the exit code of its tests.

    Raises ToolError if the interpreter is missing or the compilation fails.
    """
    check = CHECKS[name]
    print_line(f"{name}: {check.purpose}")
    tested = install_environment(COLLECTORS_TESTS)
    python = shutil.which(check.interpreter) if check.interpreter else str(tested)
    if python is None:
        message = f"{check.interpreter} is missing. Run `./setup.sh --with native`."
        raise ToolError(message)
    folder = state_folder() / "tools" / f"native-{name}"
    compile_native(folder, python, check.flags)
    command = [python, "-X", "faulthandler", "-m", "pytest", "-q"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *check.tests],
        cwd=folder,
        env={**os.environ, **_test_environment(check, folder, tested)},
        check=False,
    ).returncode


def _run_and_time(name: str) -> str:
    started = time.monotonic()
    code = run_check(name)
    outcome = "passed" if code == 0 else f"FAILED with code {code}"
    return f"{name:14}{outcome:24}{time.monotonic() - started:6.0f} s"


def main(names: Sequence[str]) -> int:
    """Run all given checks; return the number of failures, or 2 for unknown ones."""
    unknown = set(names) - set(CHECKS)
    if unknown:
        print_line(f"Unknown: {', '.join(unknown)}. Checks: {', '.join(CHECKS)}.")
        return 2
    rows = [_run_and_time(name) for name in names or CHECKS]
    print_line("\n".join(rows))
    return sum("FAILED" in row for row in rows)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        sys.exit(str(error))
