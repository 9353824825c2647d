"""The C part is optional: without a compiler, ``keylag_otel.pure`` does its work.

``KEYLAG_REQUIRE_NATIVE=1`` makes a warning or a failure to compile it an error; the
tests are built so.
"""

import os
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

REQUIRED = os.environ.get("KEYLAG_REQUIRE_NATIVE") == "1"

#: The C part counts on the GIL; to load it would bring that back for the whole process.
HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


def native(pattern: str) -> list[str]:
    """Return the files of the C part, relative to this one."""
    return sorted(map(str, Path("native").glob(pattern)))


EXTENSION = Extension(
    "keylag_otel._watch",
    native("*.c"),
    depends=native("*.h"),
    extra_compile_args=["-Wall", "-Wextra", "-Werror"] if REQUIRED else [],
    optional=not REQUIRED,
)

setup(
    ext_modules=[EXTENSION] if HAS_GIL else [],
    options={"build_ext": {"force": REQUIRED}},
)
