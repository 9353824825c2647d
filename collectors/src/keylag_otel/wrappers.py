"""Wrapper factories for seams: each returns a function from callable to wrapper.

A wrapper passes arguments, result and exception through unchanged.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Callable

from keylag_otel.model import OPERATIONS, PHASE_BITS, PHASE_MASK, PHASES
from keylag_otel.request_aggregator import AGGREGATOR
from keylag_otel.request_timer import (
    RequestTimer,
    set_fault_handler,
    wrap,
    wrap_context_manager,
)

Call = Callable[..., Any]
WrapperFactory = Callable[[Call], Call]
BeforeHook = Callable[[RequestTimer, "tuple[Any, ...]", "dict[str, Any]"], None]
AfterHook = Callable[[RequestTimer, "tuple[Any, ...]", Any], None]
ErrorHook = Callable[[RequestTimer, "tuple[Any, ...]", Exception], None]

LOG = logging.getLogger("keylag_otel")


def timed(
    phase: str | None = None,
    operation: str | None = None,
    kinds: tuple[int, int] | None = None,
    **hooks: Call,
) -> WrapperFactory:
    """Time a call in a phase, an operation, or both.

    Without a phase or operation, that of the caller continues.  `kinds` and `hooks` are
    those of `keylag_otel.pure.wrapper.wrap`.
    """
    mask = (0 if phase else PHASE_MASK) | (0 if operation else ~PHASE_MASK)
    bits = PHASES.index(phase or "other") * bool(phase)
    bits |= (OPERATIONS.index(operation or "other") * bool(operation)) << PHASE_BITS
    return partial(wrap, mask=mask, bits=bits, kinds=kinds, **hooks)


def before_call(hook: BeforeHook) -> WrapperFactory:
    """Run a hook before each call: ``hook(timer, args, kwargs)``."""
    return partial(wrap, before=hook)


def after_call(hook: AfterHook) -> WrapperFactory:
    """Run a hook after each call that returns: ``hook(timer, args, result)``."""
    return partial(wrap, after=hook)


def on_exception(hook: ErrorHook) -> WrapperFactory:
    """Run a hook after each call that raises: ``hook(timer, args, exception)``."""
    return partial(wrap, on_error=hook)


def count_fault(call: Any) -> None:
    """Count an exception of Keylag's own code around `call`; never raises."""
    try:
        name = getattr(call, "__qualname__", None)
        AGGREGATOR.count_fault(name if isinstance(name, str) else "unknown")
        LOG.debug("keylag failed in the wrapper of %s", name)
    except Exception:
        LOG.debug("keylag could not count a fault", exc_info=True)


set_fault_handler(count_fault)


def timed_context(phase: str, on_exit: BeforeHook | None = None) -> WrapperFactory:
    """Time the body of the context manager that a call returns.

    ``on_exit(timer, args, {})`` gets the positional arguments of the call when the
    body ends.
    """
    bits = PHASES.index(phase)
    return partial(wrap_context_manager, mask=~PHASE_MASK, bits=bits, on_exit=on_exit)
