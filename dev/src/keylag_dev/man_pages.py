"""Generates manual pages: `python -m keylag_dev.man_pages FOLDER`."""

import re
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
            group = entry.load()
            _load_subcommands(group)
            write_man_pages(
                entry.name, group, version=package.version, target_dir=str(folder)
            )
    for page in folder.glob("keylag*.1"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_VERBATIM.sub(r".nf\n\1.fi\n", text), encoding="utf-8")


def _load_subcommands(group: click.Command) -> None:
    # click-man ignores sub-commands that are imported lazily.
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found:
                group.add_command(found, name)
                _load_subcommands(found)


if __name__ == "__main__":
    command()
