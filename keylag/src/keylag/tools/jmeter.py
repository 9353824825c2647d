"""JMeter 5.6: found on the PATH, or put together from its published artifacts.

Debian's package is 2.13, which cannot read today's plans.
"""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from keylag.state import DEPLOY
from keylag.tools.base import Build, Tool

POM = DEPLOY / "jmeter" / "pom.xml"
NEEDED = (5, 6)
ANSWER_SECONDS = 30

LAUNCHER = """\
#!/bin/sh
# Starts JMeter; JVM_ARGS are options for Java, as in JMeter's own script.
exec java ${JVM_ARGS:--Xms256m -Xmx1g} -jar "$(dirname "$0")/ApacheJMeter.jar" "$@"
"""


def is_new_enough(program: Path) -> bool:
    """Tell whether a JMeter found on the PATH is 5.6 or newer."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return version(done.stdout) >= NEEDED


def version(banner: str) -> tuple[int, int]:
    """Read the version at the end of JMeter's banner; (0, 0) if there is none."""
    found = re.findall(r"(\d+)\.(\d+)(?:\.\d+)?\s*$", banner, re.MULTILINE)
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def destination(jar: str) -> str:
    """Return where in JMeter's home a jar belongs.

    JMeter finds its home from where ApacheJMeter.jar is, and its own parts in
    lib/ext.
    """
    if re.fullmatch(r"ApacheJMeter-[\d.]+\.jar", jar):
        return "bin/ApacheJMeter.jar"
    return f"lib/ext/{jar}" if jar.startswith("ApacheJMeter_") else f"lib/{jar}"


def assemble(jars: Path, home: Path) -> None:
    """Lay the jars out as JMeter's home, with the files of its bin/ folder."""
    for folder in ("bin", "lib/ext", "lib/junit"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for jar in sorted(jars.glob("*.jar")):
        jar.rename(home / destination(jar.name))
    for config in (home / "lib" / "ext").glob("ApacheJMeter_config-*.jar"):
        with zipfile.ZipFile(config) as archive:
            names = [name for name in archive.namelist() if name.startswith("bin/")]
            archive.extractall(home, names)
    launcher = home / "bin" / "jmeter"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


def _make(build: Build) -> None:
    jars = build.folder / "jars"
    build.run(
        [
            "mvn",
            "-B",
            "-ntp",
            "-f",
            POM,
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
        ]
    )
    assemble(jars, build.folder)
    shutil.rmtree(jars)


TOOL = Tool(
    name="jmeter",
    purpose="JMeter 5.6",
    inputs=("deploy/jmeter/pom.xml",),
    program="bin/jmeter",
    make=_make,
    advice=(
        "Either let Maven reach its repository (its settings.xml) and run "
        "`make setup` again, or put JMeter 5.6's bin folder on the PATH."
    ),
    on_path=("jmeter",),
    accept=is_new_enough,
)
