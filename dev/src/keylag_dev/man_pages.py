"""Manual pages of the commands: `python -m keylag_dev.man_pages FOLDER`."""

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import click
from click_man.core import write_man_pages

PACKAGES: Final = ("keylag", "keylag-exporters")
"""The distributions whose commands have pages."""
_VERBATIM: Final = re.compile(r"^\x08\n((?:[^.\n].*\n)+)", re.MULTILINE)
"""A paragraph that click leaves as it is; click-man leaves its mark in."""


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a page for each command and sub-command into FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in map(distribution, PACKAGES):
        for entry in package.entry_points.select(group="console_scripts"):
            group = entry.load()
            _load_subcommands(group)
            write_man_pages(
                entry.name, group, version=package.version, target_dir=str(folder)
            )
    for page in folder.glob("keylag*.1"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_VERBATIM.sub(r".nf\n\1.fi\n", text), encoding="utf-8")


def _load_subcommands(group: click.Command) -> None:
    """Import the sub-commands, which click-man does not ask for."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found:
                group.add_command(found, name)
                _load_subcommands(found)


if __name__ == "__main__":
    command()
