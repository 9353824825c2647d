"""Cassandra and YCSB from their Maven artifacts, and a binding between them."""

from pathlib import Path
from typing import Final

from keylag.paths import DATA, SETUP_COMMAND
from keylag.tools import maven
from keylag.tools.tool import Build, Tool

LOCK: Final = "locks/cassandra.txt"
BINDING: Final = "deploy/neighbours/CassandraBinding.java"
COMMAND: Final = f"{SETUP_COMMAND} --with labs"
LAUNCHER: Final = """\
#!/bin/sh
# Runs a class of Cassandra or YCSB; takes options for Java, the class, its arguments.
home=$(dirname "$(dirname "$0")")
exec java -cp "$home/classes:$home/lib/*" "$@"
"""


def jar(home: Path, name: str) -> Path:
    """Return the jar of an artifact in the home folder; raises ValueError."""
    return min((home / "lib").glob(f"{name}-[0-9]*.jar"))


def _build(build: Build) -> None:
    for name in ("bin", "classes", "lib"):
        (build.folder / name).mkdir()
    maven.fetch_lock(build, LOCK, build.folder / "lib")
    build.run(["javac", "-d", "classes", "-cp", "lib/*", DATA / BINDING])
    launcher = build.folder / "bin" / "launch"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


TOOL: Final = Tool(
    name="cassandra",
    purpose="Cassandra and YCSB, for laboratories",
    inputs=(LOCK, BINDING),
    program="bin/launch",
    make=_build,
    advice=maven.advice(COMMAND),
    command=COMMAND,
)
