"""Definition of a tool: its inputs, programs that replace it, and its build."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from keylag.errors import KeylagError
from keylag.paths import DATA, SETUP_COMMAND

LOG_LINES_SHOWN = 20


class ToolError(KeylagError):
    """A tool is missing, or its build failed."""


@dataclass
class Build:
    """One build of a tool: a scratch folder, a log, and its running processes."""

    folder: Path
    log: Path
    cache: Path
    """Folder for files that later builds reuse."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    cancelled: bool = False

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run one command and log its output; raises ToolError if it fails."""
        words = [str(word) for word in command]
        with self._run_process(words, cwd, env) as process:
            code = process.wait()
        if code != 0:
            message = f"`{' '.join(words)}` failed with exit code {code}"
            raise ToolError(message)

    @contextmanager
    def _run_process(
        self, words: list[str], cwd: Path | None, env: Mapping[str, str] | None
    ) -> Iterator[subprocess.Popen[bytes]]:
        self.raise_if_cancelled()
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(words)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                words,
                cwd=cwd or self.folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.running.append(process)
        try:
            yield process
        finally:
            self.running.remove(process)

    def raise_if_cancelled(self) -> None:
        """Raise ToolError after `cancel`."""
        if self.cancelled:
            message = "cancelled"
            raise ToolError(message)

    def cancel(self) -> None:
        """Terminate running commands and refuse new ones."""
        self.cancelled = True
        for process in list(self.running):
            process.terminate()


@dataclass(frozen=True)
class Tool:
    """A program that the set-up finds on the PATH or builds."""

    name: str
    purpose: str
    """Short description for the progress display."""
    inputs: tuple[str, ...]
    """Files below `paths.DATA`; a change causes a new build."""
    program: str
    """Path of the program in the folder that `make` fills."""
    make: Callable[[Build], None]
    advice: str
    """What to do if the build fails; for users."""
    on_path: tuple[str, ...] = ()
    """Names of programs that replace the build if `accept` returns true."""
    accept: Callable[[Path], bool] = lambda _: False
    command: str = SETUP_COMMAND
    """The command that builds it."""

    def programs_on_path(self) -> list[Path]:
        """Return the programs on the PATH that may replace the build."""
        found = (shutil.which(name) for name in self.on_path)
        return [Path(path) for path in found if path]

    def inputs_digest(self) -> str:
        """Return a digest of all inputs; a different one makes the build outdated."""
        digest = hashlib.sha256(f"{self.name} {DATA} {version('keylag')}".encode())
        for name in self.inputs:
            digest.update(name.encode() + (DATA / name).read_bytes())
        for path in self.programs_on_path():
            status = path.stat()
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
        return digest.hexdigest()[:16]


def tail(log: Path, lines: int = LOG_LINES_SHOWN) -> str:
    """Return the last lines of a log; empty if it does not exist."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])
