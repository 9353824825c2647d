"""Open the wanted sources and serve them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    ProcessCollector,
    generate_latest,
)

from keylag_exporters import serve, sources, web_config
from keylag_exporters.collector import Running, SourceCollector
from keylag_exporters.settings import SettingsError, complete, port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def run(
    wanted: Mapping[str, Mapping[str, Any]], listen: str, file: Path | None
) -> None:
    """Check everything, then open the sources and serve."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    kinds = {name: sources.kind(name) for name in wanted}
    settings = {name: complete(kinds[name], given) for name, given in wanted.items()}
    config = web_config.load(file)
    server = _bind(listen, config)
    running = [
        Running(name, kinds[name].open(values), values["timeout"], values["interval"])
        for name, values in settings.items()
    ]
    collector = SourceCollector(running)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    scheme = "https" if config.tls else "http"
    click.echo(f"{', '.join(settings)}: {scheme}://{listen}/metrics", err=True)

    def metrics(timeout: float) -> bytes:
        return collector.expose(timeout) + generate_latest(registry)

    try:
        serve.serve(server, metrics, [one.source.close for one in running])
    except OSError as error:
        message = f"the state was not saved: {error}"
        raise click.ClickException(message) from error


def _bind(listen: str, config: web_config.WebConfig) -> serve.Server:
    """Return the bound server, or say why the address cannot be had."""
    host, _, number = listen.rpartition(":")
    try:
        return serve.make_server((host.strip("[]"), port(number)), config)
    except ValueError as error:
        message = f"cannot listen on {listen}: {error}"
        raise SettingsError(message) from error
    except OSError as error:
        message = f"cannot listen on {listen}: {error.strerror}"
        raise click.ClickException(message) from error
