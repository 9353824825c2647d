"""Arguments and checks that the commands of `keylag experiment` share."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from keylag.errors import KeylagError
from keylag.experiment import option_checks, plan_parser
from keylag.experiment.obstacles import find_obstacles
from keylag.experiment.plan import Plan
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.tools import ToolError

SEED_LIMIT: Final = 2**31


class PlanFile(click.Path):
    """The path of a plan, also given by the name of one of Keylag's own."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, *context: Any) -> Any:
        """Return the path of a plan."""
        named = PLANS_FOLDER / f"{value}.toml"
        return named if named.exists() else super().convert(value, *context)


def read_runnable_plan(
    file: Path, minutes: float | None = None
) -> tuple[Plan, list[str]]:
    """Read and check a plan, and leave out optional arms without their programs.

    Returns the plan and a sentence on each arm that is left out.  Raises PlanError, and
    ToolError for a missing program.
    """
    plan = plan_parser.limit_minutes(plan_parser.read_plan(file), minutes)
    missing = option_checks.missing_arms(plan)
    sentences = [f"Arm {name} is left out: {why}" for name, why in missing.items()]
    runnable = plan.with_arms(plan.arms.keys() - missing.keys())
    if missing and not runnable.other_arms:
        raise ToolError("\n".join([*sentences, "No arm is left to compare."]))
    option_checks.check_plan(runnable, file)
    return runnable, sentences


def require_quiet_machine(environment: Mapping[str, Any], *, anyway: bool) -> None:
    """Raise KeylagError if other programs disturb a run, unless told `--anyway`."""
    obstacles = list(find_obstacles(environment))
    if obstacles and not anyway:
        advice = "Stop these programs, or start with --anyway."
        raise KeylagError(" ".join([*obstacles, advice]))


plan_argument = click.argument("file", metavar="PLAN", type=PlanFile())
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=lambda: secrets.randbelow(SEED_LIMIT),
    show_default="random",
    help="Seed of the random order.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Check the plan, print a forecast, and stop."
)
anyway_option = click.option(
    "--anyway", is_flag=True, help="Run although noise disturbs the measurement."
)
