"""A key repository with many keys."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.keys import FOLDER, KeyFolder
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, keys: float) -> Iterator[Change]:
    yield KeyFolder(round(keys))
    option = {"OS_FERNET_TOKENS__KEY_REPOSITORY": str(site.folder / FOLDER)}
    yield Options(environment=option)


FAULT = Fault(
    id="T1",
    name="key-repository",
    summary="Keystone reads many keys from disk for each token.",
    mechanism=(
        "Keystone restarts with a copy of its key repository that has many old "
        "keys too."
    ),
    slows=(POST, GET),
    strength=Strength(1000, "more keys", 1, 100_000),
    uses=uses(parts.KEYS),
    changes=_changes,
)
