"""Measures the mutation score of tests with mutmut, on a copy of the checkout.

``python -m keylag_dev.mutation [MODULE...]``: MODULE is a part of a module's path; the
default is all of `PROJECTS`.  mutmut changes one expression of a function at a time
and runs the tests that call the function; a failing test kills the mutant.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.tool import Tool, ToolError
from keylag.tools.venvs import create_venv
from keylag_dev.matrix import install_environment, print_line

MIN_SCORE = 0.85
"""Smallest share of killed mutants that a module needs."""


@dataclass(frozen=True)
class Project:
    """Modules of a package, and the fast tests that cover them."""

    source: str
    """Folder of the modules, relative to the package."""
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    excluded_tests: tuple[str, ...] = ()
    """Tests to exclude because they are slow, or fail on a busy machine."""


_REFERENCE_TEST = (
    "tests/test_fingerprint.py::test_nasty_statements_get_the_ids_of_the_reference"
)

PROJECTS: Mapping[str, Project] = {
    "collectors": Project(
        source="src",
        modules=(
            "src/keylag_otel/seam.py",
            "src/keylag_otel/instrumentor.py",
            "src/keylag_otel/patches.py",
            "src/keylag_otel/seams/dogpile.py",
            "src/keylag_otel/seams/keystone.py",
            "src/keylag_otel/seams/sqlalchemy.py",
        ),
        tests=(
            "tests/test_seam.py",
            "tests/test_seam_edges.py",
            "tests/test_seam_tables.py",
            "tests/test_patches.py",
            "tests/test_instrumentor.py",
            "tests/test_instrumentors_together.py",
        ),
    ),
    "exporters": Project(
        source="src",
        modules=(
            "src/keylag_exporters/slow_log/follow.py",
            "src/keylag_exporters/slow_log/fingerprint.py",
            "src/keylag_exporters/slow_log/unions.py",
        ),
        tests=(
            "tests/test_follow.py",
            "tests/test_follow_errors.py",
            "tests/test_follow_counts.py",
            "tests/test_slow_log_source.py",
            "tests/test_fingerprint.py",
            "tests/test_fingerprint_linear.py",
        ),
        excluded_tests=(
            "tests/test_fingerprint_linear.py::test_time_grows_as_the_statement_does",
            "tests/test_fingerprint.py::test_a_hostile_statement_takes_linear_time",
            f"{_REFERENCE_TEST}[1]",
            f"{_REFERENCE_TEST}[2]",
        ),
    ),
    "bench": Project(
        source="keylag_bench",
        modules=("keylag_bench/intervals.py", "keylag_bench/verdicts.py"),
        tests=("tests/test_intervals.py", "tests/test_results.py"),
    ),
    "keylag": Project(
        source="src",
        modules=(
            "src/keylag/experiment/estimates.py",
            "src/keylag/experiment/planned_looks.py",
            "src/keylag/experiment/ratios.py",
            "src/keylag/experiment/verdicts.py",
        ),
        tests=(
            "tests/test_experiment_estimates.py",
            "tests/test_experiment_planned_looks.py",
            "tests/test_experiment_statistics.py",
            "tests/test_experiment_verdicts.py",
        ),
    ),
}

CONFIGURATION = r"""
[mutmut]
source_paths={source}
only_mutate=
    {modules}
pytest_add_cli_args_test_selection=
    -m
    not stack and not slow
    {tests}
# Log messages are not tested.
do_not_mutate_patterns=LOG\.
process_isolation=forkserver
timeout_constant=5
timeout_multiplier=5
use_git_change_detection=false

[tool:pytest]
markers =
    matrix
    newest
    slow
    stack
"""

LOCK_FILE = "locks/mutation.txt"
TOOL = Tool(
    name="mutation-tests",
    purpose="mutmut, and the imports of mutated modules and their tests",
    inputs=(LOCK_FILE,),
    program="bin/mutmut",
    make=lambda build: create_venv(build, build.folder, LOCK_FILE),
    advice="Check the connection to the package index of pip and uv.",
    command="make mutation",
)

COLUMNS = ("mutants", "killed", "survived", "timeout", "score")
_RESULT = re.compile(r"^ *([\w.]+)\.x[_ǁ]\w*: (.+)$", re.MULTILINE)

Outcomes = Counter[str]
"""The number of mutants of a module by outcome."""


def select_projects(patterns: Sequence[str]) -> dict[str, Project]:
    """Return the projects with the modules whose paths contain a pattern."""
    found = {}
    for folder, project in PROJECTS.items():
        modules = tuple(
            module
            for module in project.modules
            if not patterns
            or any(pattern in f"{folder}/{module}" for pattern in patterns)
        )
        if modules:
            found[folder] = replace(project, modules=modules)
    return found


def parse_outcomes(results: str) -> dict[str, Outcomes]:
    """Parse the output of `mutmut results`; returns outcomes by dotted module."""
    found: dict[str, Outcomes] = {}
    for module, outcome in _RESULT.findall(results):
        found.setdefault(module, Counter())[outcome] += 1
    return found


def module_name(module: str) -> str:
    """Return the dotted import name of a module's path."""
    return module.removeprefix("src/").removesuffix(".py").replace("/", ".")


def count_killed(found: Outcomes) -> int:
    """Return the number of killed mutants; those with a timeout count as killed."""
    return found["killed"] + found["timeout"]


def score(found: Outcomes) -> float:
    """Return the share of killed mutants; mutants without tests count as survivors."""
    return count_killed(found) / found.total()


def table_row(module: str, found: Outcomes) -> str:
    """Return a row of the table."""
    survived = found.total() - count_killed(found)
    counts = (found.total(), found["killed"], survived, found["timeout"])
    cells = (*map(str, counts), f"{score(found):.1%}")
    return f"{module:52}" + "".join(f"{cell:>10}" for cell in cells)


@dataclass(frozen=True)
class Workspace:
    """A copy of the checkout in which mutmut works."""

    folder: Path
    python: Path

    def create(self) -> None:
        """Copy the checkout, including compiled files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(CHECKOUT, self.folder, ignore=_ignored_names)

    def run(self, name: str, project: Project) -> dict[str, Outcomes]:
        """Run all mutants of a project; returns outcomes by dotted module.

        Raises ToolError if mutmut fails or skips a module.
        """
        configuration = CONFIGURATION.format(
            source=project.source,
            modules="\n    ".join(project.modules),
            tests="\n    ".join(
                (
                    *project.tests,
                    *(f"--deselect={test}" for test in project.excluded_tests),
                )
            ),
        )
        (self.folder / name / "setup.cfg").write_text(configuration)
        jobs = len(os.sched_getaffinity(0))
        self._mutmut(name, "run", "--max-children", str(jobs))
        found = parse_outcomes(self._mutmut(name, "results", "--all", "true"))
        missing = [
            module for module in project.modules if module_name(module) not in found
        ]
        if missing:
            message = f"mutmut created no mutants of {', '.join(missing)} in {name}."
            raise ToolError(message)
        return found

    def _mutmut(self, name: str, *arguments: str) -> str:
        log = self.folder / f"{name}-{arguments[0]}.log"
        path = ":".join(str(self.folder / one / "src") for one in PROJECTS)
        with log.open("w", encoding="utf-8") as file:
            code = subprocess.run(
                [self.python, "-m", "mutmut", *arguments],
                cwd=self.folder / name,
                env={**os.environ, "PYTHONPATH": path},
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        if code != 0:
            message = (
                f"mutmut {arguments[0]} failed; its log is {log}. Check that the tests "
                f"pass without a mutant: cd {self.folder / name} && "
                f"PYTHONPATH={path} {self.python} "
                f"-m pytest {' '.join(PROJECTS[name].tests)}"
            )
            raise ToolError(message)
        return log.read_text("utf-8")


def _ignored_names(folder: str, names: list[str]) -> set[str]:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "out")(folder, names)
    state = state_folder()
    return ignored | ({state.name} if Path(folder) == state.parent else set())


def main(patterns: Sequence[str]) -> int:
    """Print the score of each module; return how many are below MIN_SCORE."""
    started = time.monotonic()
    workspace = Workspace(state_folder() / "mutation", install_environment(TOOL))
    workspace.create()
    print_line(f"{'module':52}" + "".join(f"{name:>10}" for name in COLUMNS))
    low = 0
    for name, project in select_projects(patterns).items():
        found = workspace.run(name, project)
        for module in project.modules:
            print_line(table_row(f"{name}/{module}", found[module_name(module)]))
            low += score(found[module_name(module)]) < MIN_SCORE
    print_line(f"{low} below {MIN_SCORE:.0%}, in {time.monotonic() - started:.0f} s")
    return low


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolError as error:
        sys.exit(str(error))
