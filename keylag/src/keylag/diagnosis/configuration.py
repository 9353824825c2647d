"""Reads Keystone's configuration files: which value an option has, and where.

oslo.config parses the lines, so that a file means here what it means to Keystone: the
last value of an option counts, and later files override earlier ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from oslo_config.iniparser import BaseParser, ParseError

from keylag.errors import WrongUsageError
from keylag.location import without_credentials

FALSE: Final = ("false", "0", "no", "off")
"""What oslo.config takes for false, in any case."""


@dataclass(frozen=True)
class Option:
    """The name of an option, and of its section."""

    section: str
    name: str

    def __str__(self) -> str:
        """Return its name as a reader looks for it."""
        return f"[{self.section}] {self.name}"


@dataclass(frozen=True)
class Setting:
    """The value of an option, and the line that sets it."""

    value: str
    file: Path
    line: int

    @property
    def is_false(self) -> bool:
        """Return whether it is false."""
        return self.value.lower() in FALSE

    @property
    def shown(self) -> str:
        """The value without the password of a URL."""
        return without_credentials(self.value) if "://" in self.value else self.value

    def __str__(self) -> str:
        """Return the value and where it is."""
        return f"{self.shown or 'empty'}, line {self.line} of {self.file}"


@dataclass(frozen=True)
class Configuration:
    """What the files say; an option that is in none has Keystone's default."""

    files: Sequence[Path] = ()
    settings: Mapping[Option, Setting] = field(default_factory=dict)

    def find(self, section: str, name: str) -> Setting | None:
        """Return the setting of an option; None if no file has it."""
        return self.settings.get(Option(section, name))

    def value(self, section: str, name: str, default: str = "") -> str:
        """Return the value of an option, or a default."""
        found = self.find(section, name)
        return found.value if found else default


NO_CONFIGURATION: Final = Configuration()


def read_configuration(
    files: Sequence[Path], folders: Sequence[Path] = ()
) -> Configuration:
    """Read files, and then the *.conf files of folders by name, as Keystone does.

    Raises WrongUsageError for a file that cannot be read.
    """
    chosen = [*files, *(one for each in folders for one in sorted(each.glob("*.conf")))]
    settings: dict[Option, Setting] = {}
    for file in chosen:
        settings |= _read(file)
    return Configuration(chosen, settings)


def _read(file: Path) -> Mapping[Option, Setting]:
    parser = _Parser(file)
    try:
        # An empty line ends the last option.
        parser.parse([*file.read_text(encoding="utf-8").splitlines(), ""])
    except (OSError, ValueError, ParseError) as error:
        reason = getattr(error, "strerror", None) or error
        message = (
            f"{file} is no configuration file of Keystone: {reason}. --config takes"
            " keystone.conf, or another file with [sections] and options."
        )
        raise WrongUsageError(message) from error
    return parser.settings


class _Parser(BaseParser):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.section = ""
        self.settings: dict[Option, Setting] = {}

    def new_section(self, section: str) -> None:
        self.section = section.lower() if section != "DEFAULT" else section

    def assignment(self, key: str, value: list[str]) -> None:
        line = self.lineno - len(value)
        if not self.section:
            self._fail(line, key)
        setting = Setting(" ".join(value).strip(), self.file, line)
        self.settings[Option(self.section, key)] = setting

    @staticmethod
    def _fail(line: int, key: str) -> NoReturn:
        message = "an option is before the first [section]"
        raise ParseError(message, line, key)
