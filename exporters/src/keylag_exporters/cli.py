"""The command `keylag-exporter`: one sub-command per source, and `all`."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keylag_exporters.command_errors import exit_with_message
from keylag_exporters.settings import (
    SettingsError,
    all_options,
    environment_variable,
    load_config_file,
    setting_key,
)
from keylag_exporters.sources import (
    ALL_PORT,
    SOURCES,
    load_source_type,
    load_source_types,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keylag_exporters.model import Option, SourceType

DEFAULT_SUFFIX = "[default: {}]"


class _Sources(click.Group):
    """Creates the sub-command of a source on demand."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `exit_with_message` turns exceptions into exit codes."""
        with exit_with_message(debug=ctx.params["debug"]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all sub-commands, in the order of SOURCES."""
        del ctx
        return [*SOURCES, "all"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a sub-command, or None for an unknown name."""
        del ctx
        if cmd_name == "all":
            return _all()
        if cmd_name not in SOURCES:
            return None
        command = _command(load_source_type(cmd_name))
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
    help="Print the traceback of an error.  [$KEYLAG_DEBUG]",
)
@click.version_option(package_name="keylag-exporters", prog_name="keylag-exporter")
def main(*, debug: bool) -> None:
    """Export statistics of Keystone's database, proxy, cache, web server and host."""


def _serve(*settings_by_source: Any) -> None:
    from keylag_exporters.run import run  # noqa: PLC0415 -- speeds up --once

    run(*settings_by_source)


def _source_options(source_type: SourceType, prefix: str = "") -> list[click.Option]:
    """Return a flag for each option; the flag of a secret names a file."""
    return [
        _source_option(source_type, option, prefix)
        for option in all_options(source_type)
    ]


def _source_option(
    source_type: SourceType, option: Option, prefix: str
) -> click.Option:
    """Return the flag of one option.

    Its default is None, so that a configuration file can set the value.
    """
    name = f"--{prefix}{option.name}"
    help_ = f"{option.help} [{environment_variable(source_type, option)}]"
    if option.secret:
        return click.Option([f"{name}-file"], help=f"File with the secret: {help_}")
    if option.type is bool:
        return click.Option([name], is_flag=True, default=None, help=help_)
    if option.default is not None:
        help_ += f" {DEFAULT_SUFFIX.format(option.default)}"
    # settings.resolve_settings applies the type to flags, variables and files.
    return click.Option(
        [name], metavar=option.type.__name__.removeprefix("parse_").upper(), help=help_
    )


def _server_options(port: int) -> list[click.Option]:
    return [
        click.Option(
            ["--listen"],
            default=f"127.0.0.1:{port}",
            show_default=True,
            help="Listen address of /metrics, as ADDRESS:PORT.",
        ),
        click.Option(
            ["--web-config-file", "web_config_file"],
            type=click.Path(path_type=Path),
            help="Prometheus web configuration: TLS and basic authentication.",
        ),
    ]


def _given_options(
    source_type: SourceType, flags: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return the options of one source that were given as flags, by setting key."""
    names = (
        setting_key(one) + "_file" * one.secret for one in all_options(source_type)
    )
    found = {name: flags.get(prefix + name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _command(source_type: SourceType) -> click.Command:
    def run(listen: str, web_config_file: Path | None, **flags: Any) -> None:
        _serve(
            {source_type.name: _given_options(source_type, flags)},
            listen,
            web_config_file,
        )

    return click.Command(
        source_type.name,
        callback=run,
        help=source_type.help,
        params=[*_source_options(source_type), *_server_options(source_type.port)],
    )


def _all() -> click.Command:
    def run(
        config: Path | None, listen: str, web_config_file: Path | None, **flags: Any
    ) -> None:
        settings_by_source = load_config_file(config) if config else {}
        unknown = sorted(set(settings_by_source) - set(SOURCES))
        if unknown:
            message = f"unknown source: {', '.join(unknown)}"
            raise SettingsError(message)
        for one in load_source_types():
            given = _given_options(one, flags, one.name.replace("-", "_") + "_")
            if given or one.name in settings_by_source:
                settings_by_source[one.name] = {
                    **settings_by_source.get(one.name, {}),
                    **given,
                }
        if not settings_by_source:
            message = "no source configured: give --config FILE or options of a source"
            raise SettingsError(message)
        _serve(settings_by_source, listen, web_config_file)

    flags = [
        flag
        for one in load_source_types()
        for flag in _source_options(one, f"{one.name}-")
    ]
    config = click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        help="TOML file with a section for each source to run.",
    )
    return click.Command(
        "all",
        callback=run,
        help="Run all configured sources in one process.",
        params=[config, *_server_options(ALL_PORT), *flags],
    )


def _with_once(command: click.Command) -> click.Command:
    """Add `--once` to slow-log: read a file once instead of following it."""
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
        from keylag_exporters.slow_log import read_once  # noqa: PLC0415 -- speeds up serving

        try:
            read_once.print_report(
                once, output, read_once.TimeWindow.parse(since, until), sys.stdout
            )
        except BrokenPipeError:
            raise
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise click.ClickException(str(error)) from error

    command.callback = run
    command.params += [
        click.Option(
            ["--once"], help="Read FILE once (- for standard input; gzip is detected)."
        ),
        click.Option(
            ["--output"],
            type=click.Choice(["json", "table", "log"]),
            default="table",
            show_default=True,
            help="With --once: output format; `log` prints the events.",
        ),
        click.Option(["--since"], help="With --once: events at or after this time."),
        click.Option(["--until"], help="With --once: events before this time."),
    ]
    return command
