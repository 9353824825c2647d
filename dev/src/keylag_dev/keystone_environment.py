"""Virtual environments that get Keystone and keylag-otel by pip, as operators do it."""

import shutil
import subprocess
from pathlib import Path

from uv import find_uv_bin

from keylag.paths import CHECKOUT
from keylag.tools.venvs import base_interpreter
from keylag_dev.pythons import BUILD_OUTPUT, PACKAGE_FILES


class Environment:
    """A virtual environment and its packages."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "bin" / "python"
        self._uv("venv", "-q", "-p", base_interpreter(), folder)

    def pip(self, command: str, *words: object) -> str:
        """Run a command of pip, and return what it printed."""
        return self._uv("pip", command, "-q", "--python", self.python, *words)

    def freeze(self) -> set[str]:
        """Return the installed packages, each with its version."""
        return set(self.pip("freeze").splitlines())

    def _uv(self, *words: object) -> str:
        done = subprocess.run(
            [find_uv_bin(), *map(str, words)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout


def copy_collectors(folder: Path) -> Path:
    """Return a copy of the package keylag-otel in a folder, without build output."""
    for name in PACKAGE_FILES:
        source, target = CHECKOUT / "collectors" / name, folder / "collectors" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=BUILD_OUTPUT)
        else:
            shutil.copy(source, target)
    return folder / "collectors"
