"""Downloads the artifacts of a lock file from a Maven repository.

Maven resolves artifacts one after the other, which takes more than a minute; a lock
file, locks/NAME.txt, names them here.
"""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from keylag.errors import root_cause
from keylag.paths import DATA
from keylag.tools.tool import Build, ToolError

REPOSITORY = "https://repo1.maven.org/maven2"
REPOSITORY_VARIABLE = "KEYLAG_MAVEN_REPOSITORY"
CONNECTIONS = 12
RETRIES = 3
DOWNLOAD_TIMEOUT_SECONDS = 60


def advice(command: str) -> str:
    """Return what to do if a download fails; `command` repeats it."""
    return (
        f"Set HTTPS_PROXY to a proxy, or {REPOSITORY_VARIABLE} to the URL of a mirror "
        f"of Maven Central, and run `{command}` again."
    )


def fetch_lock(build: Build, lock: str, folder: Path) -> None:
    """Download the artifacts of a lock file below `paths.DATA`; raises ToolError."""
    fetch(build, artifacts((DATA / lock).read_text()), folder)


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
            message = f"{repository}/{path} is not the file that the lock names"
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
