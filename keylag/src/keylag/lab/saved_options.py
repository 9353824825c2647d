"""Options of a laboratory that runs, kept in a file of its folder."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from keylag.lab.iproute import LabError
from keylag.state import write_output


@dataclass(frozen=True)
class SavedOptions:
    """Base of the options, whose fields have values of JSON."""

    FILE: ClassVar[str]
    LABORATORY: ClassVar[str]
    """Name of the command of `keylag lab`."""
    NOTHING: ClassVar[str]
    """What does not run, in an error: `No cluster`."""

    @classmethod
    def read(cls, lab: Path) -> Self:
        """Return the options of what runs in a folder; raises LabError without it."""
        try:
            return cls(**json.loads((lab / cls.FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            command = f"keylag lab {cls.LABORATORY} up"
            message = f"{cls.NOTHING} runs in {lab}. Run `{command}`."
            raise LabError(message) from error

    def write(self, lab: Path) -> None:
        """Keep the options of what runs in a folder; raises OSError."""
        write_output(lab / self.FILE, json.dumps(self.as_json(), indent=2))

    def as_json(self) -> dict[str, Any]:
        """Return the options for JSON."""
        return asdict(self)

    @classmethod
    def forget(cls, lab: Path) -> None:
        """Delete the options, as nothing runs any more; raises OSError."""
        (lab / cls.FILE).unlink(missing_ok=True)
