"""Write the locks of programs from Maven: each artifact with its SHA-256.

``python -m keylag_dev.maven_lock [NAME]...``; needs Maven, which resolves
locks/NAME.xml into locks/NAME.txt.
"""

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import click

from keylag.paths import CHECKOUT
from keylag.tools import cassandra, jmeter

LOCKS: Final = {Path(one.LOCK).stem: one.LOCK for one in (jmeter, cassandra)}


def lines(repository: Path) -> list[str]:
    """Return a line for each artifact below a folder: its hash and its path."""
    return [
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.relative_to(repository)}"
        for jar in sorted(repository.rglob("*.jar"))
    ]


def write_lock(lock: Path) -> None:
    """Resolve the project beside a lock, and write the lock.

    Raises subprocess.CalledProcessError or OSError.
    """
    project = lock.with_suffix(".xml")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *("mvn", "-B", "-ntp", "-f", project, "dependency:copy-dependencies"),
                *("-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={folder}"),
            ],
            check=True,
        )
        text = "\n".join(lines(Path(folder))) + "\n"
    lock.write_text(text, encoding="utf-8")


@click.command()
@click.argument("names", metavar="[NAME]...", type=click.Choice(list(LOCKS)), nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Write the locks of NAMEs, or all of them."""
    for name in names or LOCKS:
        write_lock(CHECKOUT / LOCKS[name])


if __name__ == "__main__":
    main()
