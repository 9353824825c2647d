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
    """Version and build of a Python."""

    version: str
    tested: bool
    free_threaded: bool
    """Whether this is a free-threaded build."""
    gil: bool
    """Whether the GIL is enabled now; an extension module may enable it."""

    def __str__(self) -> str:
        build = ", free-threaded" if self.free_threaded else ""
        return f"{self.version} ({'tested' if self.tested else 'not tested'}{build})"


def current_runtime() -> Runtime:
    """Return the runtime of this process."""
    version = platform.python_version()
    return Runtime(
        version=version,
        tested=".".join(version.split(".")[:2]) in TESTED_PYTHONS,
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        gil=getattr(sys, "_is_gil_enabled", lambda: True)(),
    )


def advice(python: Runtime) -> Iterator[str]:
    """Yield advice for untested and unsupported Pythons."""
    if not python.tested:
        yield (
            f"Keylag is not tested on this Python, {python.version}; it is tested on "
            f"{', '.join(TESTED_PYTHONS)}."
        )
    if python.free_threaded:
        gil = "on" if python.gil else "off"
        yield (
            f"Keylag does not support this free-threaded build of Python (GIL {gil}): "
            "its native part is not compiled, and it is not tested. Run Keystone with "
            "the standard build."
        )
