"""Other work on the processors."""

import os
from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, per_processor: float) -> Iterator[Change]:
    loops = max(1, round(per_processor * (os.cpu_count() or 1)))
    yield Helper("busy-loops", {"loops": loops})


FAULT = Fault(
    id="W2",
    name="cpu-starved",
    summary="Other processes take the processor time.",
    mechanism="Busy loops run beside the stack, some on each processor.",
    slows=(POST, GET),
    strength=Strength(2, "busy loops per processor", 0.1, 32),
    uses=uses("the processors"),
    changes=_changes,
)
