"""A mark on a context: what starts in it is traced, whatever a sampler says."""

from __future__ import annotations

from opentelemetry.context import Context, create_key, get_value, set_value

_KEEP = create_key("keylag-keep")


def keep(context: Context) -> Context:
    """Return the context with the mark."""
    return set_value(_KEEP, object(), context)


def is_kept(context: Context | None) -> bool:
    """Return whether a context has the mark."""
    return get_value(_KEEP, context) is not None
