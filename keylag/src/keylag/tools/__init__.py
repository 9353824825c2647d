"""Programs that Keylag runs: found on the PATH, or built by `keylag setup`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keylag.paths import INSTALLED
from keylag.state import state_folder
from keylag.tools import cassandra, jmeter, otel_collector, venvs
from keylag.tools.install import require_tool
from keylag.tools.programs import find_program
from keylag.tools.tool import Tool, ToolError

__all__ = [
    "DEMO_TOOLS",
    "EXTRA_TOOLS",
    "TOOLS",
    "Tool",
    "ToolError",
    "Tools",
    "find_program",
]

TOOLS: tuple[Tool, ...] = (
    otel_collector.TOOL,
    venvs.KEYSTONE,
    jmeter.TOOL,
)
"""Tools of the standard set-up; the slowest build first."""

DEMO_TOOLS = tuple(tool for tool in TOOLS if tool is not otel_collector.TOOL)
"""Tools of `keylag demo`, which does without the Collector."""

_DEVELOPMENT_TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "tests": (venvs.COLLECTORS_TESTS,),
    "bench": (venvs.BENCH,),
    # Only Debian packages; `make test-...` builds the rest.
    "keystone-own": (),
    "native": (),
    "pythons": (),
}

EXTRA_TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "keystone-2026.1": (venvs.KEYSTONE_TOOLS["2026.1"],),
    "labs": (venvs.RALLY, venvs.SWIFT, cassandra.TOOL),
    **({} if INSTALLED else _DEVELOPMENT_TOOLS),
}
"""Tools that `keylag setup --with NAME` adds."""


@dataclass(frozen=True)
class Tools:
    """Paths of the programs."""

    keystone: Path
    """Keystone's virtual environment (a folder)."""
    otelcol: Path | None
    """None for a stack without the Collector."""
    jmeter: Path
    """The `jmeter` script."""
    mariadbd: Path
    mariadb_install_db: Path
    memcached: Path
    prometheus: Path

    @classmethod
    def load(cls, state: Path | None = None, *, collector: bool = True) -> "Tools":
        """Find all programs, the Collector only on request.

        Raises ToolError if one is missing or outdated.
        """
        folder = (state or state_folder()) / "tools"
        return cls(
            keystone=require_tool(venvs.KEYSTONE, folder).parents[1],
            otelcol=require_tool(otel_collector.TOOL, folder) if collector else None,
            jmeter=require_tool(jmeter.TOOL, folder),
            mariadbd=find_program("mariadbd"),
            mariadb_install_db=find_program("mariadb-install-db"),
            memcached=find_program("memcached"),
            prometheus=find_program("prometheus"),
        )
