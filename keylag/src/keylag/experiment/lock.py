"""The lock of experiments: two at the same time would disturb each other."""

from contextlib import AbstractContextManager

from keylag.state import locked, state_folder


def experiment_lock() -> AbstractContextManager[None]:
    """Return the lock that a running experiment holds; says so if it has to wait."""
    waiting = "Waiting until another experiment ends."
    return locked(state_folder() / "experiment.lock", waiting)
