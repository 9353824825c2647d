"""How a seam is watched: each maker turns a callable into its watched twin.

A watched call passes arguments, result and exception through untouched.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Callable

from keylag_otel.clock import Clock, tell_faults, watch, watch_body
from keylag_otel.ledger import LEDGER
from keylag_otel.model import OPERATIONS, PHASE_BITS, PHASE_MASK, PHASES

Call = Callable[..., Any]
Maker = Callable[[Call], Call]
Note = Callable[[Clock, "tuple[Any, ...]", "dict[str, Any]"], None]
NoteResult = Callable[[Clock, "tuple[Any, ...]", Any], None]
NoteFailure = Callable[[Clock, "tuple[Any, ...]", Exception], None]

LOG = logging.getLogger("keylag_otel")


def timed(
    phase: str | None = None, operation: str | None = None, **notes: Call
) -> Maker:
    """Book a call's self time to a phase, an operation, or both.

    What is not given stays as it is: the innermost that says something wins.
    `notes` are those of ``clock.watch``.
    """
    keep = (0 if phase else PHASE_MASK) | (0 if operation else ~PHASE_MASK)
    put = PHASES.index(phase or "other") * bool(phase)
    put |= (OPERATIONS.index(operation or "other") * bool(operation)) << PHASE_BITS
    return partial(watch, keep=keep, put=put, **notes)


def noted(note: Note) -> Maker:
    """Let `note` read the arguments before the call; its failure is ours alone."""
    return partial(watch, before=note)


def noted_result(note: NoteResult) -> Maker:
    """Let `note` read the arguments and the result after a call that returned."""
    return partial(watch, after=note)


def noted_failure(note: NoteFailure) -> Maker:
    """Let `note` read the arguments and what a call raised; it is raised on."""
    return partial(watch, failed=note)


def fault(call: Any) -> None:
    """Count an exception of our own, raised while watching `call`; never raises."""
    try:
        name = getattr(call, "__qualname__", None)
        LEDGER.fault(name if isinstance(name, str) else "unknown")
        LOG.debug("keylag failed while watching %s", name)
    except Exception:
        LOG.debug("keylag could not count its own failure", exc_info=True)


tell_faults(fault)


def timed_context(phase: str, left: Note | None = None) -> Maker:
    """Like `timed`, for the body of the context manager that a call returns.

    `left` reads the call's positional arguments when the body is left.
    """
    put = PHASES.index(phase)
    return partial(watch_body, keep=~PHASE_MASK, put=put, left=left)
