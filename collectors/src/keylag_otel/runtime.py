"""The running Python: whether Keylag is tested on it, and whether it has a GIL."""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass

from keylag_otel.package import TESTED_PYTHONS


@dataclass(frozen=True)
class Runtime:
    """One Python."""

    version: str
    tested: bool
    free_threaded: bool
    """Whether it was built to run without the GIL."""
    gil: bool
    """Whether the GIL is on now; an extension module may have switched it on."""

    def __str__(self) -> str:
        build = ", free-threaded" if self.free_threaded else ""
        return f"{self.version} ({'tested' if self.tested else 'not tested'}{build})"


def running() -> Runtime:
    """Describe the Python that runs this."""
    version = platform.python_version()
    return Runtime(
        version=version,
        tested=".".join(version.split(".")[:2]) in TESTED_PYTHONS,
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        gil=getattr(sys, "_is_gil_enabled", lambda: True)(),
    )


def advice(python: Runtime) -> Iterator[str]:
    """Say what to know about a Python that is not like those of the tests."""
    if not python.tested:
        yield (
            f"This Python, {python.version}, is none of those that Keylag is tested "
            f"on ({', '.join(TESTED_PYTHONS)})."
        )
    if python.free_threaded:
        gil = "on" if python.gil else "off"
        yield (
            f"This is a free-threaded build of Python, with the GIL {gil}, which "
            "Keylag does not support: its C part is not compiled for it, and nothing "
            "is tested on it. Run Keystone with the ordinary build."
        )
