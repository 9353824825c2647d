"""Forced sampling: a flag in a context that overrules the sampler."""

from __future__ import annotations

from opentelemetry.context import Context, create_key, get_value, set_value

_FORCED = create_key("keylag-force-sampling")


def force_sampling(context: Context) -> Context:
    """Return a context in which all new spans are sampled."""
    return set_value(_FORCED, object(), context)


def is_forced(context: Context | None) -> bool:
    """Return whether sampling is forced in a context."""
    return get_value(_FORCED, context) is not None
