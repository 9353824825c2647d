"""Runs Keystone's own unit tests with and without Keylag, and compares outcomes.

``python -m keylag_dev.keystone_unit_tests [MODULE...]``: a module is the name after
``keystone.tests.unit.``.  The default is TOKEN_MODULES; ``all`` runs all modules.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.tools.tool import ToolError
from keylag.tools.venvs import collectors_tests_tool
from keylag_dev.matrix import install_environment, print_line

TESTS_TOOL = replace(
    collectors_tests_tool(
        "keystone-own",
        "locks/keystone-own.txt",
        "the requirements of Keystone's own tests",
    ),
    advice=(
        "The build compiles python-ldap. Install the packages gcc, python3-dev, "
        "libldap2-dev and libsasl2-dev."
    ),
)
ARMS = ("without", "with")
TOKEN_MODULES = (
    *("token.test_fernet_provider", "token.test_jws_provider"),
    *("token.test_token_serialization", "test_token_provider"),
    *("test_revoke", "test_v3_os_revoke", "test_middleware", "test_auth_plugin"),
    *("test_user_group_cache_invalidation", "common.test_cache"),
    *("common.test_notifications", "common.test_rbac_enforcer"),
    *("catalog.test_core", "test_v3_catalog"),
    *("identity.test_core", "identity.test_backend_sql", "test_v3_identity"),
    *("assignment.test_core", "test_v3_assignment"),
    *("test_backend_sql", "test_shadow_users", "test_versions", "test_policy"),
    *("test_v3_application_credential", "test_v3_trust", "test_v3_auth"),
)

ALL = "all"

Outcomes = dict[str, str]


def list_modules(python: Path) -> list[str]:
    """Return the names of all unit test modules of an environment's Keystone."""
    packages = python.parent.parent.glob("lib/python3*/site-packages")
    folder = next(packages) / "keystone" / "tests" / "unit"
    files = sorted(folder.rglob("test_*.py"))
    return [".".join(file.relative_to(folder).with_suffix("").parts) for file in files]


def _start(
    python: Path, arm: str, module: str, file: Path
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            *(python, "-W", "ignore", CHECKOUT / "tests/keystone-own/outcomes.py"),
            *(file, arm, f"keystone.tests.unit.{module}"),
        ],
        cwd=file.parent,
        stdout=subprocess.DEVNULL,
        stderr=file.with_suffix(".log").open("wb"),
        env={"PATH": "/usr/bin:/bin", "OTEL_METRICS_EXPORTER": "none"},
    )


def run(python: Path, module: str) -> dict[str, Outcomes]:
    """Run a module with and without Keylag, in parallel.

    Returns outcomes by arm and test.  Raises ToolError if a run writes no outcomes.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {arm: Path(folder) / arm / "outcomes.json" for arm in ARMS}
        for file in files.values():
            file.parent.mkdir()
        running = [_start(python, arm, module, file) for arm, file in files.items()]
        for process in running:
            process.wait()
        for file in files.values():
            if not file.exists():
                log = file.with_suffix(".log").read_text("utf-8", "replace")
                message = f"{module} did not run. The end of its log:\n{log[-2000:]}"
                raise ToolError(message)
        return {arm: json.loads(file.read_text()) for arm, file in files.items()}


def differences(outcomes: dict[str, Outcomes]) -> list[str]:
    """Return a line for each test with different outcomes in the arms."""
    bare, loaded = (outcomes[arm] for arm in ARMS)
    return [
        f"{test}: {bare.get(test)} without, {loaded.get(test)} with Keylag"
        for test in sorted({*bare, *loaded})
        if bare.get(test) != loaded.get(test)
    ]


def _table_row(name: str, counts: dict[str, Counter[str]]) -> str:
    cells = (counts[arm][kind] for kind in ("passed", "failed") for arm in ARMS)
    return f"{name:42}" + "".join(f"{cell:>10}" for cell in cells)


def main(modules: Sequence[str]) -> int:
    """Run modules and print outcomes and differences; return the exit code."""
    python = install_environment(TESTS_TOOL)
    total: dict[str, Counter[str]] = {arm: Counter() for arm in ARMS}
    differing: list[str] = []
    print_line(
        f"{'':42}{'passed':>20}{'failed':>20}\n{'module':42}{' without      with' * 2}"
    )
    if list(modules) == [ALL]:
        modules = list_modules(python)
    for module in modules or TOKEN_MODULES:
        outcomes = run(python, module)
        counts = {arm: Counter(outcomes[arm].values()) for arm in ARMS}
        print_line(_table_row(module, counts))
        differing += differences(outcomes)
        for arm in ARMS:
            total[arm] += counts[arm]
    print_line("\n".join([_table_row("all", total), *differing]))
    return 1 if differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        sys.exit(str(error))
