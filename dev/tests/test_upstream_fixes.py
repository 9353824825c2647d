"""The fixes in docs/upstream cure faults of the releases that Keylag installs."""

import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools import venvs
from keylag.tools.install import installed_path

FOLDER = CHECKOUT / "docs" / "upstream"
SCRIPT = FOLDER / "run.py"
RUN = runpy.run_path(str(SCRIPT))
FIXES = tuple(RUN["FIXES"])
KEYSTONE = installed_path(venvs.KEYSTONE, state_folder() / "tools")
needs_keystone = pytest.mark.skipif(
    KEYSTONE is None, reason=f"needs Keystone: `{venvs.KEYSTONE.command}`"
)


def run(name: str) -> subprocess.CompletedProcess[str]:
    """Run the script with Keystone's interpreter."""
    assert KEYSTONE
    command = [Path(KEYSTONE).with_name("python"), SCRIPT, name]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_keystone
@pytest.mark.stack
@pytest.mark.parametrize("name", FIXES)
def test_fault_is_found_and_the_fix_cures_it(name: str) -> None:
    ended = run(name)

    heading, installed, fixed = ended.stdout.splitlines()
    assert heading.startswith(" ".join(RUN["FIXES"][name][1:]))
    assert installed != "installed: no fault"
    assert fixed == "fixed: no fault"
    assert ended.returncode == 0


APPLY_ALL = f"""
import runpy, warnings
warnings.simplefilter("ignore")
for name in {FIXES}:
    runpy.run_path({str(SCRIPT)!r})["install"](name)
from keystone.common.cache import core
from keystone.revoke.backends import sql
from keystone.server.flask.core import auth_context
proxy = core._context_cache._ResponseCacheProxy
fixed = core._context_cache, sql, auth_context
print("get_serialized" in vars(proxy), *(type(m.__loader__).__name__ for m in fixed))
"""


@needs_keystone
def test_fixes_together_reach_the_modules_that_keystone_uses() -> None:
    assert KEYSTONE
    command = [Path(KEYSTONE).with_name("python"), "-c", APPLY_ALL]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.stdout.split() == ["True", *3 * ["FixedLoader"]], ended.stderr


def test_fix_of_an_imported_module_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fix = RUN["FIXES"]["scrypt-rounds"]
    monkeypatch.setitem(sys.modules, fix.module, ModuleType(fix.module))

    with pytest.raises(SystemExit, match="is imported already"):
        RUN["install"]("scrypt-rounds")


@needs_keystone
def test_unknown_fix_is_an_error_that_lists_all() -> None:
    ended = run("redis")

    assert ended.returncode == 1
    assert ", ".join(FIXES) in ended.stderr


def test_each_fix_has_what_its_project_needs() -> None:
    for name in FIXES:
        text = (FOLDER / name / "README.md").read_text()
        assert f"run.py {name}\n" in text
        assert "Commit message:" in text
        assert f"({name}/README.md)" in (FOLDER / "README.md").read_text()


def test_script_replaces_deletes_and_adds_lines() -> None:
    script = ["4a", "five", ".", "2,3c", "two", "three", ".", "1d"]

    assert RUN["apply_script"](["1", "2", "3", "4"], script) == [
        "two",
        "three",
        "4",
        "five",
    ]
