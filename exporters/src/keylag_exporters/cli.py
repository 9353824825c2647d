"""The command `keylag-exporter`: a sub-command per source, and `all`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keylag_exporters.command_errors import reported
from keylag_exporters.settings import (
    SettingsError,
    from_file,
    options_of,
    parameter,
    variable,
)
from keylag_exporters.sources import ALL_PORT, SOURCES, kind, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keylag_exporters.model import Kind, Option

SHOWN = "[default: {}]"


class _Sources(click.Group):
    """Makes the sub-command of a source when it is asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; see keylag_exporters.command_errors for how it ends."""
        with reported(debug=ctx.params["debug"]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the table."""
        del ctx
        return [*SOURCES, "all"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a sub-command, or None when there is none of that name."""
        del ctx
        if cmd_name == "all":
            return _all()
        if cmd_name not in SOURCES:
            return None
        command = _command(kind(cmd_name))
        return _with_once(command) if cmd_name == "slow-log" else command


@click.group(
    "keylag-exporter",
    cls=_Sources,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, or stopped by SIGTERM; 1 failed; 2 wrong usage; "
    "130 interrupted by Ctrl-C.",
)
@click.option(
    "--debug",
    is_flag=True,
    envvar="KEYLAG_DEBUG",
    help="Show where an error comes from.  [$KEYLAG_DEBUG]",
)
@click.version_option(package_name="keylag-exporters", prog_name="keylag-exporter")
def main(*, debug: bool) -> None:
    """Export what stands beside Keystone to Prometheus."""


def _serve(*wanted: Any) -> None:
    """Open and serve sources."""
    from keylag_exporters.run import run  # noqa: PLC0415 -- a log read once must not wait

    run(*wanted)


def _flags(kind: Kind, prefix: str = "") -> list[click.Option]:
    """Return the flags of a source's options; a secret's flag names a file."""
    return [_flag(kind, option, prefix) for option in options_of(kind)]


def _flag(kind: Kind, option: Option, prefix: str) -> click.Option:
    """Return one flag. Its default stays None, so that a file can come between."""
    name = f"--{prefix}{option.name}"
    help_ = f"{option.help} [{variable(kind, option)}]"
    if option.secret:
        return click.Option([f"{name}-file"], help=f"File with it: {help_}")
    if option.type is bool:
        return click.Option([name], is_flag=True, default=None, help=help_)
    if option.default is not None:
        help_ += f" {SHOWN.format(option.default)}"
    # Its type is applied to flags, variables and files alike: see settings.complete.
    return click.Option([name], metavar=option.type.__name__.upper(), help=help_)


def _serving(port: int) -> list[click.Option]:
    """Return the flags of the web server."""
    return [
        click.Option(
            ["--listen"],
            default=f"127.0.0.1:{port}",
            show_default=True,
            help="ADDRESS:PORT of /metrics.",
        ),
        click.Option(
            ["--web-config-file", "web_config_file"],
            type=click.Path(path_type=Path),
            help="TLS and basic authentication, as for Prometheus.",
        ),
    ]


def _given(kind: Kind, flags: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the flags of one source that were given, by option."""
    names = (parameter(one) + "_file" * one.secret for one in options_of(kind))
    found = {name: flags.get(prefix + name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _command(kind: Kind) -> click.Command:
    """Return the sub-command of a source."""

    def run(listen: str, web_config_file: Path | None, **flags: Any) -> None:
        _serve({kind.name: _given(kind, flags)}, listen, web_config_file)

    return click.Command(
        kind.name,
        callback=run,
        help=kind.help,
        params=[*_flags(kind), *_serving(kind.port)],
    )


def _all() -> click.Command:
    """Return the sub-command that runs several sources."""

    def run(
        config: Path | None, listen: str, web_config_file: Path | None, **flags: Any
    ) -> None:
        wanted = from_file(config) if config else {}
        unknown = sorted(set(wanted) - set(SOURCES))
        if unknown:
            message = f"no such source: {', '.join(unknown)}"
            raise SettingsError(message)
        for one in kinds():
            given = _given(one, flags, one.name.replace("-", "_") + "_")
            if given or one.name in wanted:
                wanted[one.name] = {**wanted.get(one.name, {}), **given}
        if not wanted:
            message = "nothing to run: name a --config file or a source's settings"
            raise SettingsError(message)
        _serve(wanted, listen, web_config_file)

    flags = [flag for one in kinds() for flag in _flags(one, f"{one.name}-")]
    config = click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        help="TOML file with a section for each source to run.",
    )
    return click.Command(
        "all",
        callback=run,
        help="Run every source that has a setting, in one process.",
        params=[config, *_serving(ALL_PORT), *flags],
    )


def _with_once(command: click.Command) -> click.Command:
    """Add to slow-log what reads a file once instead of following it."""
    serving: Callable[..., Any] | None = command.callback

    def run(
        once: str | None,
        output: str,
        since: str | None,
        until: str | None,
        **flags: Any,
    ) -> None:
        if once is None:
            if serving:
                serving(**flags)
            return
        from keylag_exporters.slow_log import once as reader  # noqa: PLC0415 -- not needed to serve

        try:
            reader.report(once, output, reader.Window.of(since, until), sys.stdout)
        except (EOFError, OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error

    command.callback = run
    command.params += [
        click.Option(
            ["--once"], help="Read FILE (- is standard input, gzip too) once."
        ),
        click.Option(
            ["--output"],
            type=click.Choice(["json", "table", "log"]),
            default="table",
            show_default=True,
            help="With --once: what to print; `log` prints the events themselves.",
        ),
        click.Option(["--since"], help="With --once: events from this time on."),
        click.Option(["--until"], help="With --once: events before this time."),
    ]
    return command
