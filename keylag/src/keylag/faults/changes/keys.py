"""A key repository with more keys; Keystone's own stays as it is."""

import base64
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag.faults.site import Site

FOLDER = "fault-keys"


@dataclass(frozen=True)
class KeyFolder:
    """A copy of the stack's Fernet keys with many old ones, in the stack's folder."""

    keys: int

    def apply(self, site: "Site") -> None:
        """Write the copy: old keys first, then the stack's own in their order."""
        folder = site.folder / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        own = sorted(site.fernet_keys.iterdir(), key=lambda file: int(file.name))
        old = [base64.urlsafe_b64encode(os.urandom(32)) for _ in range(self.keys)]
        # 0 is the staged key; the highest number is the primary key.
        staged, *others = [file.read_bytes() for file in own]
        for number, key in enumerate([staged, *old, *others]):
            handle = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(key)

    def undo(self, site: "Site") -> None:
        """Delete the copy."""
        shutil.rmtree(site.folder / FOLDER, ignore_errors=True)
