"""The C part is optional: without a compiler, ``keylag_otel.pure`` does its work."""

from pathlib import Path

from setuptools import Extension, setup


def native(pattern: str) -> list[str]:
    """Return the files of the C part, relative to this one."""
    return sorted(map(str, Path("native").glob(pattern)))


setup(
    ext_modules=[
        Extension(
            "keylag_otel._watch",
            native("*.c"),
            depends=native("*.h"),
            optional=True,
        )
    ]
)
