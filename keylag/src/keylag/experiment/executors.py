"""The executor of a plan: stacks of its own, or Keystones that run already."""

from pathlib import Path

from rich.console import Console

from keylag.experiment.plan import Plan
from keylag.experiment.remote import RemoteArmsExecutor, SwitchedExecutor
from keylag.experiment.stack_executor import StackExecutor
from keylag.state import state_folder


def make_executor(
    plan: Plan, console: Console, otlp: str | None = None
) -> RemoteArmsExecutor | SwitchedExecutor | StackExecutor:
    """Return the executor of a plan; stacks send their metrics to the URL `otlp`."""
    if plan.remote and plan.is_switched:
        return SwitchedExecutor(plan, plan.remote)
    if plan.remote:
        return RemoteArmsExecutor(plan, plan.remote, console)
    return StackExecutor(plan, stacks_folder(), console, otlp)


def stacks_folder() -> Path:
    """Return the folder of the stacks of an experiment, as their processes know it."""
    return (state_folder() / "experiment").resolve()
