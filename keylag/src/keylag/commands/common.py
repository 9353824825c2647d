"""Options and output that several commands share."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from keylag.remote_engines import KEYSTORE, NO_TLS_WARNING, Access
from keylag.stack_info import StackInfo
from keylag.state import default_stack_folder

Function = Callable[..., Any]

# Displayed name, name of the port, path.
SERVER_PAGES = (
    ("Keystone", "keystone", "/v3"),
    ("Service", "service", ""),
    ("Prometheus", "prometheus", ""),
    ("Grafana", "grafana", "/dashboards?tag=keylag"),
    ("Jaeger", "jaeger", "/search"),
    ("Tempo", "tempo", ""),
)

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds in each unit of a duration."""


class TimeParam(click.ParamType[float]):
    """A click parameter for points in time, absolute or relative to now."""

    name = "TIME"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return Unix seconds; a time without a UTC offset is in UTC."""
        if ago := re.fullmatch(r"(\d+)([smhd])", value):
            return time.time() - int(ago[1]) * UNITS[ago[2]]
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value} is not a time such as 2026-11-21T05:54 or 10m", param, ctx
            )
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def state_option(function: Function) -> Function:
    """Add the option `--state`, passed as `folder`."""
    return click.option(
        "--state",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_stack_folder,
        show_default="stack in $KEYLAG_STATE or .keylag",
        help="Folder of the stack, with its data, logs, ports and passwords.",
    )(function)


def output_option(
    description: str = "Output format.", forms: Sequence[str] = ("table", "json")
) -> Callable[[Function], Function]:
    """Add the option `--output`, passed as `form`."""
    return click.option(
        "--output",
        "form",
        type=click.Choice(forms),
        default="table",
        show_default=True,
        help=description,
    )


def out_folder_option(kind: str, contents: str) -> Callable[[Function], Function]:
    """Add the option `--out`; `results.folder` creates the default folder."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        show_default=f"out/{kind}/TIME",
        help=f"Empty or new folder for {contents}.",
    )


def access_options(function: Function) -> Function:
    """Add the options `--keystore` and `--no-tls`, passed as `keystore` and `tls`."""
    function = click.option(
        "--no-tls",
        "tls",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Connect controller and engines without TLS, in a network you trust.",
    )(function)
    return click.option(
        "--keystore",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path(KEYSTORE),
        show_default=True,
        help="Keystore that controller and engines have in common.",
    )(function)


def find_access(keystore: Path, *, tls: bool) -> Access:
    """Return how controller and engines connect; warns if that is without TLS."""
    if not tls:
        click.echo(NO_TLS_WARNING, err=True)
    access = Access(keystore if tls else None)
    access.require_keystore()
    return access


def address_lines(stack: StackInfo) -> list[str]:
    """Return lines with the URLs of a running stack and the path of its openrc."""
    lines = [
        f"{name:<12} {stack.url(port)}{path}"
        for name, port, path in SERVER_PAGES
        if port in stack.ports
    ]
    return [*lines, f"{'Credentials':<12} source {stack.folder / 'openrc'}"]
