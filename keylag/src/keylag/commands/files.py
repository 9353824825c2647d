"""`keylag files`: prints where Keylag's own files are."""

import click

from keylag.paths import DATA


@click.command("files")
def command() -> None:
    """Print the folder of Keylag's plans, deploy files and dashboards.

    \b
    Example:
      cp -r "$(keylag files)/dashboards/generated/import" .
    """  # noqa: D301 - click reads a backspace
    click.echo(DATA)
