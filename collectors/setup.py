"""Build the native part; without a compiler, ``keylag_otel.pure`` replaces it.

``KEYLAG_REQUIRE_NATIVE=1`` turns compiler warnings and failures into errors, as in the
builds for the tests.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

REQUIRED = os.environ.get("KEYLAG_REQUIRE_NATIVE") == "1"

#: The native part needs the GIL; loading it would enable the GIL for the process.
HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


def native(pattern: str) -> list[str]:
    """Return files of the native part, relative to this one."""
    return sorted(map(str, Path("native").glob(pattern)))


#: Calls of Python's functions skip the procedure linkage table.
DIRECT_CALLS = ["-fno-plt"] if sys.platform == "linux" else []
STRICT = ["-Wall", "-Wextra", "-Werror"] if REQUIRED else []

EXTENSION = Extension(
    "keylag_otel._native",
    native("*.c"),
    depends=native("*.h"),
    extra_compile_args=[*DIRECT_CALLS, *STRICT],
    optional=not REQUIRED,
)

setup(
    ext_modules=[EXTENSION] if HAS_GIL else [],
    options={"build_ext": {"force": REQUIRED}},
)
