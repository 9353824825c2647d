"""A key repository on a slow file system."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.changes.slow_keys import FOLDER, SlowKeys
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, reads_per_second: float) -> Iterator[Change]:
    yield SlowKeys(reads_per_second)
    option = {"OS_FERNET_TOKENS__KEY_REPOSITORY": str(site.folder / FOLDER)}
    yield Options(environment=option)


FAULT = Fault(
    id="T1",
    name="key-repository",
    variant="slow",
    summary="Keystone reads its keys from a slow file system.",
    mechanism=(
        "bindfs shows the key repository with a limit of reads per second, which all "
        "workers share, and Keystone restarts with that folder."
    ),
    slows=(POST, GET),
    strength=Strength(40, "reads of a key per second", 1, 100_000),
    uses=uses(parts.KEYS),
    changes=_changes,
)
