"""Plants a fault at a site of a laboratory while something is measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from keylag.faults.registry import FAULTS
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import run
from keylag.lab.load import keylag_on
from keylag.lab.network import Host

FLUSHED: Final = "C8:client"
"""The fault that empties a site's memcached all the time."""
_RATE: Final = FAULTS[FLUSHED].strength
FLUSHES: Final = f"{_RATE.default:g} {_RATE.unit}"
"""Its strength in words."""


@contextmanager
def planted(lab: Path, router: Host, fault: str) -> Iterator[None]:
    """Give a site a fault by its key while the body runs; raises LabError."""
    command = [*keylag_on(router), "fault"]
    state = f"--state={site_folder(lab, router.name)}"
    run(*command, "start", fault, state, "--no-check")
    try:
        yield
    finally:
        run(*command, "stop", fault, state)
