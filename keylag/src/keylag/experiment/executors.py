"""The executor of a plan: stacks of its own, or a remote Keystone."""

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
    return StackExecutor(plan, state_folder() / "experiment", console, otlp)
