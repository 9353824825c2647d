"""JMeter 5.6: found on the PATH, or assembled from its Maven artifacts.

Debian packages JMeter 2.13, which cannot read current plans.  Maven resolves artifacts
one after the other, which takes more than a minute; a lock file names them here.
"""

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from keylag.errors import root_cause
from keylag.paths import DATA, SETUP_COMMAND
from keylag.tools.tool import Build, Tool, ToolError

LOCK = "locks/jmeter.txt"
REPOSITORY = "https://repo1.maven.org/maven2"
REPOSITORY_VARIABLE = "KEYLAG_MAVEN_REPOSITORY"
CONNECTIONS = 12
RETRIES = 3
DOWNLOAD_TIMEOUT_SECONDS = 60
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


def artifacts(lock: str) -> list[tuple[str, str]]:
    """Return (SHA-256, path in the repository) of each artifact of a lock file."""
    return [(digest, path) for digest, path in map(str.split, lock.splitlines())]


def fetch(build: Build, wanted: Iterable[tuple[str, str]], folder: Path) -> None:
    """Download artifacts into a folder in parallel, and check their hashes.

    Raises ToolError if a download fails or has another hash.
    """
    repository = os.environ.get(REPOSITORY_VARIABLE, REPOSITORY).rstrip("/")
    thread = local()

    def download(artifact: tuple[str, str]) -> None:
        digest, path = artifact
        build.raise_if_cancelled()
        if not hasattr(thread, "session"):
            thread.session = _session()
        content = _content(thread.session, f"{repository}/{path}")
        if hashlib.sha256(content).hexdigest() != digest:
            message = f"{repository}/{path} is not the file that {LOCK} names"
            raise ToolError(message)
        (folder / Path(path).name).write_bytes(content)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        # The first failure cancels the downloads that have not begun.
        for _ in pool.map(download, wanted):
            pass


def _session() -> requests.Session:
    retry = Retry(RETRIES, backoff_factor=0.5, status_forcelist=(500, 502, 503, 504))
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def _content(session: requests.Session, url: str) -> bytes:
    try:
        response = session.get(url, timeout=DOWNLOAD_TIMEOUT_SECONDS)
        response.raise_for_status()
    except requests.RequestException as error:
        message = f"{url} cannot be downloaded: {root_cause(error)}"
        raise ToolError(message) from error
    return response.content


def _build_jmeter(build: Build) -> None:
    jars = build.folder / "jars"
    jars.mkdir()
    fetch(build, artifacts((DATA / LOCK).read_text()), jars)
    assemble_home(jars, build.folder)
    shutil.rmtree(jars)


TOOL = Tool(
    name="jmeter",
    purpose="JMeter 5.6",
    inputs=(LOCK,),
    program="bin/jmeter",
    make=_build_jmeter,
    advice=(
        f"Set HTTPS_PROXY to a proxy, or {REPOSITORY_VARIABLE} to the URL of a mirror "
        f"of Maven Central, and run `{SETUP_COMMAND}` again. Or put the bin folder of "
        "JMeter 5.6 on the PATH."
    ),
    on_path=("jmeter",),
    accept=is_new_enough,
)
