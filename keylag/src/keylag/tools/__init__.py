"""The programs that Keylag runs and the set-up makes: one file per kind."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keylag.state import state_folder
from keylag.tools import collector as otelcol
from keylag.tools import jmeter, venvs
from keylag.tools.base import Tool, ToolError
from keylag.tools.install import ready

__all__ = [
    "DEMO_TOOLS",
    "EXTRA_TOOLS",
    "SYSTEM_PROGRAMS",
    "TOOLS",
    "Tool",
    "ToolError",
    "Tools",
    "find_program",
]

TOOLS: tuple[Tool, ...] = (
    otelcol.TOOL,
    venvs.KEYSTONE,
    jmeter.TOOL,
)
"""Everything the set-up makes, the longest first."""

DEMO_TOOLS = tuple(tool for tool in TOOLS if tool is not otelcol.TOOL)
"""All that `keylag demo` needs: building the Collector takes most of a set-up."""

EXTRA_TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "tests": (venvs.COLLECTORS_TESTS,),
    "bench": (venvs.BENCH,),
    # Only Debian packages; their commands make the rest.
    "keystone-own": (),
    "native": (),
    "pythons": (),
    "keystone-2026.1": (venvs.KEYSTONES["2026.1"],),
}
"""What the set-up makes only when asked for it by this name."""

SYSTEM_PROGRAMS = (
    *("mariadbd", "mariadb-install-db", "memcached", "redis-server"),
    *("prometheus", "java"),
)
"""What comes from the distribution's packages."""

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where servers are, though not on the PATH of an ordinary user."""


def find_program(name: str, advice: str = "Run `make setup` to install it.") -> Path:
    """Return where the program is; raises ToolError with the advice if nowhere."""
    found = shutil.which(name) or shutil.which(name, path=":".join(SYSTEM_FOLDERS))
    if found is None:
        message = f"{name} is not installed. {advice}"
        raise ToolError(message)
    return Path(found)


@dataclass(frozen=True)
class Tools:
    """Where each program is."""

    keystone: Path
    """Keystone's virtual environment (a folder)."""
    otelcol: Path | None
    """None where the stack goes without it."""
    jmeter: Path
    """The `jmeter` script."""
    mariadbd: Path
    mariadb_install_db: Path
    memcached: Path
    prometheus: Path

    @classmethod
    def load(cls, state: Path | None = None, *, collector: bool = True) -> "Tools":
        """Find all programs, or all but the Collector.

        Raises ToolError if the set-up has not made them.
        """
        folder = (state or state_folder()) / "tools"
        return cls(
            keystone=ready(venvs.KEYSTONE, folder).parents[1],
            otelcol=ready(otelcol.TOOL, folder) if collector else None,
            jmeter=ready(jmeter.TOOL, folder),
            mariadbd=find_program("mariadbd"),
            mariadb_install_db=find_program("mariadb-install-db"),
            memcached=find_program("memcached"),
            prometheus=find_program("prometheus"),
        )
