"""What the commands on a stack share: options, and how errors show."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from keylag.stack_folder import StackFolder
from keylag.state import default_stack_folder

Function = Callable[..., Any]

# What to look up, and the name it is shown by.
PAGES = (
    ("Keystone", "keystone", "/v3"),
    ("Service", "service", ""),
    ("Prometheus", "prometheus", ""),
    ("Grafana", "grafana", "/dashboards?tag=keylag"),
    ("Jaeger", "jaeger", "/search"),
    ("Tempo", "tempo", ""),
)


def stack_folder_option(function: Function) -> Function:
    """Add `--state`, the folder of the stack."""
    return click.option(
        "--state",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_stack_folder,
        show_default="$KEYLAG_STATE/stack, or .keylag/stack in the checkout",
        help="The stack's folder: its data, logs, ports and passwords.",
    )(function)


def output_option(what: str = "What is printed.") -> Callable[[Function], Function]:
    """Add `--output`, a table for readers or JSON for programs; as `form`."""
    return click.option(
        "--output",
        "form",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help=what,
    )


def out_folder_option(kind: str, what: str) -> Callable[[Function], Function]:
    """Add `--out`, an empty folder; `keylag.results` makes one if it is not given."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        show_default=f"out/{kind}/TIME",
        help=f"Empty folder for {what}.",
    )


def addresses(stack: StackFolder) -> list[str]:
    """Return lines with the addresses of a running stack and its credentials."""
    lines = [
        f"{name:<12} {stack.url(port)}{path}"
        for name, port, path in PAGES
        if port in stack.ports
    ]
    return [*lines, f"{'Credentials':<12} source {stack.folder / 'openrc'}"]
