"""The executor of a plan: stacks of its own, or a remote Keystone."""

from pathlib import Path

from rich.console import Console

from keylag.experiment.plan import Plan
from keylag.experiment.remote import RemoteExecutor
from keylag.experiment.stack_executor import StackExecutor
from keylag.state import state_folder


def make_executor(
    plan: Plan, console: Console, otlp: str | None = None
) -> RemoteExecutor | StackExecutor:
    """Return the executor of a plan; stacks send their metrics to the URL `otlp`."""
    if plan.remote:
        return RemoteExecutor(plan, plan.remote)
    return StackExecutor(plan, stacks_folder(), console, otlp)


def stacks_folder() -> Path:
    """Return the folder of the stacks of an experiment."""
    return state_folder() / "experiment"
