"""Runs the collectors' tests with several releases of Keystone.

``python -m keylag_dev.matrix [RELEASE...]``; the default is all releases.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.install import Installer, require_tool
from keylag.tools.tool import Tool, ToolError
from keylag.tools.venvs import COLLECTORS_TESTS, collectors_tests_tool


def _tests_tool(release: str) -> Tool:
    return collectors_tests_tool(
        f"collectors-tests-{release}",
        f"locks/keystone-{release}.txt",
        f"the libraries of Keystone {release}, for the collectors' tests",
    )


RELEASES: dict[str, Tool] = {
    "zed": _tests_tool("zed"),  # Keystone 22, SQLAlchemy 1.4, as in Debian 12
    "2023.1": _tests_tool("2023.1"),  # Keystone 23, SQLAlchemy 1.4
    "2024.2": _tests_tool("2024.2"),  # Keystone 26, SQLAlchemy 2.0
    "2026.2-sqlalchemy-2.0": _tests_tool("2026.2-sqlalchemy-2.0"),
    "2026.2": COLLECTORS_TESTS,  # Keystone 30, SQLAlchemy 2.1
}
"""The test environment of each release, the oldest first."""
NEWEST_RELEASE = "2026.2"
"""Tests marked `newest` run with this release only."""


def install_environment(tool: Tool) -> Path:
    """Install an environment if it is missing or outdated; return its interpreter.

    Raises ToolError if the build fails.
    """
    folder = state_folder() / "tools"
    Installer(
        folder, lambda tool, event: print_line(f"{tool.purpose}: {event}")
    ).install([tool])
    return require_tool(tool, folder).with_name("python")


def print_line(text: str) -> None:
    """Print a line and flush it, so that it precedes the output of tests."""
    print(text, flush=True)  # noqa: T201 - the output of a command


def _run_release(release: str) -> int:
    print_line(f"Keystone {release}")
    python = install_environment(RELEASES[release])
    # Tests marked `matrix` take too long for this.
    marks = "not matrix" if release == NEWEST_RELEASE else "not matrix and not newest"
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks]
    return subprocess.run(command, cwd=CHECKOUT / "collectors", check=False).returncode


def main(releases: Sequence[str]) -> int:
    """Run all given releases; return the number of failures, or 2 for unknown ones."""
    unknown = set(releases) - set(RELEASES)
    if unknown:
        print_line(f"Unknown: {', '.join(unknown)}. Releases: {', '.join(RELEASES)}.")
        return 2
    failed = [release for release in releases or RELEASES if _run_release(release)]
    print_line(
        f"Failed with Keystone {', '.join(failed)}" if failed else "Passed with all"
    )
    return len(failed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        sys.exit(str(error))
