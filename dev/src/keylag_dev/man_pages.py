"""Generates manual pages: `python -m keylag_dev.man_pages FOLDER`."""

import re
from copy import copy
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import click
from click_man.core import write_man_pages

PACKAGES: Final = ("keylag", "keylag-exporters")
"""Distributions whose commands get a page."""
_VERBATIM: Final = re.compile(r"^\x08\n((?:[^.\n].*\n)+)", re.MULTILINE)
"""A paragraph that click does not wrap, with the marker that click-man keeps."""


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a manual page for each command and sub-command to FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in map(distribution, PACKAGES):
        for entry in package.entry_points.select(group="console_scripts"):
            write_man_pages(
                entry.name,
                _loaded_copy(entry.load()),
                version=package.version,
                target_dir=str(folder),
            )
    for page in folder.glob("keylag*.1"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_VERBATIM.sub(r".nf\n\1.fi\n", text), encoding="utf-8")


def _loaded_copy(command: click.Command) -> click.Command:
    # click-man ignores sub-commands that are imported lazily.  What it asks of a
    # command stays in that command: the help option without its short name.
    loaded = copy(command)
    if isinstance(loaded, click.Group):
        context = click.Context(loaded)
        found = {
            name: loaded.get_command(context, name)
            for name in loaded.list_commands(context)
        }
        loaded.commands = {
            name: _loaded_copy(each) for name, each in found.items() if each
        }
    return loaded


if __name__ == "__main__":
    command()
