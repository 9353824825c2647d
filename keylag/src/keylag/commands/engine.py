"""`keylag engine`: sends a part of the loads of `keylag load --remote`."""

from pathlib import Path

import click

from keylag import jmeter_engine, load_target, results
from keylag.commands.common import (
    access_options,
    find_access,
    out_folder_option,
    state_option,
)
from keylag.load_runner import jmeter_home
from keylag.load_target import LoadTarget
from keylag.remote_engines import DEFAULT_PORT, parse_engine
from keylag.stack_info import StackInfo


@click.command("engine")
@click.option(
    "--listen",
    metavar="HOST[:PORT]",
    default=f"127.0.0.1:{DEFAULT_PORT}",
    show_default=True,
    help="Address of this machine for `keylag load --remote`; the next port too.",
)
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV file of the users for whom tokens are requested.  [default: the stack's]",
)
@access_options
@out_folder_option("engine", "the log")
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    listen: str,
    users: Path | None,
    keystore: Path,
    tls: bool,  # noqa: FBT001 - click passes it by name
    out: Path | None,
    folder: Path,
) -> None:
    """Send a part of the loads of `keylag load --remote`.

    The engine waits for loads until Ctrl-C. It has the users and the passwords, which
    no load carries to it: --users names the file of users, and the variables of an
    openrc file, such as OS_USERNAME and OS_PASSWORD, the service user. Without
    --users they are those of the stack that `keylag up` started.

    \b
    Examples:
      keylag engine --listen 192.0.2.7 --users users.csv
      keylag engine --listen 127.0.0.1:2001
    """  # noqa: D301 - click reads a backspace
    engine = parse_engine(listen)
    access = find_access(keystore, tls=tls)
    target = _target(users, folder)
    with results.folder(out, "engine") as made:

        def report_ready() -> None:
            click.echo(f"Engine {engine} waits for loads; Ctrl-C ends it.", err=True)
            click.echo(f"Log: {made / 'jmeter.log'}", err=True)

        jmeter_engine.serve(
            engine,
            access,
            target,
            home=jmeter_home(),
            out=made,
            on_ready=report_ready,
        )


def _target(users: Path | None, folder: Path) -> LoadTarget:
    if users:
        return load_target.from_environment(users)
    return load_target.from_stack(StackInfo(folder), alternative="give --users")
