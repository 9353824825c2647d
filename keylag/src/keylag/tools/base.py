"""What a tool is: its inputs, where it may already be, and how it is made."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from keylag.errors import KeylagError
from keylag.state import CHECKOUT

LOG_LINES_SHOWN = 20


class ToolError(KeylagError):
    """A tool is missing or could not be made; the text says what to do."""


@dataclass
class Build:
    """One making of a tool: a scratch folder, a log, and the processes it started."""

    folder: Path
    log: Path
    cache: Path
    """A folder for what a later build can use again."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    cancelled: bool = False

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run one step, its output into the log; raises ToolError if it fails."""
        words = [str(word) for word in command]
        with self._started(words, cwd, env) as process:
            code = process.wait()
        if code != 0:
            message = f"`{' '.join(words)}` ended with code {code}"
            raise ToolError(message)

    @contextmanager
    def _started(
        self, words: list[str], cwd: Path | None, env: Mapping[str, str] | None
    ) -> Iterator[subprocess.Popen[bytes]]:
        if self.cancelled:
            message = "cancelled"
            raise ToolError(message)
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

    def cancel(self) -> None:
        """Stop what is running and start nothing more."""
        self.cancelled = True
        for process in list(self.running):
            process.terminate()


@dataclass(frozen=True)
class Tool:
    """One program that the set-up finds or makes."""

    name: str
    purpose: str
    """What the progress line says, in a few words."""
    inputs: tuple[str, ...]
    """Files of the checkout; when one changes, the tool is made again."""
    program: str
    """The program's path inside the folder that `make` fills."""
    make: Callable[[Build], None]
    advice: str
    """What to do when it could not be made."""
    on_path: tuple[str, ...] = ()
    """Names of programs that serve as well, if `accept` says so."""
    accept: Callable[[Path], bool] = lambda _: False
    command: str = "make setup"
    """The command that makes it."""

    def candidates(self) -> list[Path]:
        """Return the programs on the PATH that might serve."""
        found = (shutil.which(name) for name in self.on_path)
        return [Path(path) for path in found if path]

    def stamp(self) -> str:
        """Return a digest of everything that decides what the tool is."""
        digest = hashlib.sha256(f"{self.name} {CHECKOUT}".encode())
        for name in self.inputs:
            digest.update(name.encode() + (CHECKOUT / name).read_bytes())
        for path in self.candidates():
            status = path.stat()
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
        return digest.hexdigest()[:16]


def tail(log: Path, lines: int = LOG_LINES_SHOWN) -> str:
    """Return the last lines of a log, or nothing if there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])
