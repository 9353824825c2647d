"""JMeter 5.6: found on the PATH, or assembled from its Maven artifacts.

Debian packages JMeter 2.13, which cannot read current plans.
"""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from keylag.paths import SETUP_COMMAND
from keylag.tools import maven
from keylag.tools.tool import Build, Tool

LOCK = "locks/jmeter.txt"
MIN_VERSION = (5, 6)
TIMEOUT_SECONDS = 30

LAUNCHER = """\
#!/bin/sh
# Starts JMeter; JVM_ARGS are options for Java, as in JMeter's own script.
exec java ${JVM_ARGS:--Xms256m -Xmx1g} -jar "$(dirname "$0")/ApacheJMeter.jar" "$@"
"""


def is_new_enough(program: Path) -> bool:
    """Return whether a JMeter program is version 5.6 or newer."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return parse_version(done.stdout) >= MIN_VERSION


def parse_version(banner: str) -> tuple[int, int]:
    """Return (major, minor) from JMeter's banner; (0, 0) without a version."""
    found = re.findall(r"(\d+)\.(\d+)(?:\.\d+)?\s*$", banner, re.MULTILINE)
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def jar_path(jar: str) -> str:
    """Return the path of a jar in JMeter's home.

    JMeter derives its home from the path of ApacheJMeter.jar, and loads its components
    from lib/ext.
    """
    if re.fullmatch(r"ApacheJMeter-[\d.]+\.jar", jar):
        return "bin/ApacheJMeter.jar"
    return f"lib/ext/{jar}" if jar.startswith("ApacheJMeter_") else f"lib/{jar}"


def assemble_home(jars: Path, home: Path) -> None:
    """Move jars to their paths in JMeter's home, and unpack its bin/ folder."""
    for folder in ("bin", "lib/ext", "lib/junit"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for jar in sorted(jars.glob("*.jar")):
        jar.rename(home / jar_path(jar.name))
    for config in (home / "lib" / "ext").glob("ApacheJMeter_config-*.jar"):
        with zipfile.ZipFile(config) as archive:
            names = [name for name in archive.namelist() if name.startswith("bin/")]
            archive.extractall(home, names)
    launcher = home / "bin" / "jmeter"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


def _build_jmeter(build: Build) -> None:
    jars = build.folder / "jars"
    jars.mkdir()
    maven.fetch_lock(build, LOCK, jars)
    assemble_home(jars, build.folder)
    shutil.rmtree(jars)


TOOL = Tool(
    name="jmeter",
    purpose="JMeter 5.6",
    inputs=(LOCK,),
    program="bin/jmeter",
    make=_build_jmeter,
    advice=(
        f"{maven.advice(SETUP_COMMAND)} Or put the bin folder of JMeter 5.6 on the "
        "PATH."
    ),
    on_path=("jmeter",),
    accept=is_new_enough,
)
