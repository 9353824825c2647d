"""The version of keylag-otel."""

__version__ = "0.1.0"
