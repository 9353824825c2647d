"""Write locks/jmeter.txt: the artifacts of JMeter, each with its SHA-256.

``python -m keylag_dev.jmeter_lock``; needs Maven, which resolves locks/jmeter.xml.
"""

import hashlib
import subprocess
import tempfile
from pathlib import Path

from keylag.paths import CHECKOUT
from keylag.tools.jmeter import LOCK

PROJECT = CHECKOUT / "locks" / "jmeter.xml"


def lines(repository: Path) -> list[str]:
    """Return a line for each artifact below a folder: its hash and its path."""
    return [
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.relative_to(repository)}"
        for jar in sorted(repository.rglob("*.jar"))
    ]


def main() -> None:
    """Resolve the project and write the lock."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *("mvn", "-B", "-ntp", "-f", PROJECT, "dependency:copy-dependencies"),
                *("-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={folder}"),
            ],
            check=True,
        )
        text = "\n".join(lines(Path(folder))) + "\n"
    (CHECKOUT / LOCK).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
