"""Creates the configured sources and serves them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from keylag_exporters import http_server, sources, web_config
from keylag_exporters.collector import ScheduledSource, SourceCollector
from keylag_exporters.settings import SettingsError, parse_port, resolve_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def run(
    settings_by_source: Mapping[str, Mapping[str, Any]], listen: str, file: Path | None
) -> None:
    """Validate all settings, create the sources, and serve until a signal.

    `listen` is ADDRESS:PORT, `file` a web configuration file. Raises SettingsError for
    unusable settings.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    source_types = {name: sources.load_source_type(name) for name in settings_by_source}
    settings = {
        name: resolve_settings(source_types[name], given)
        for name, given in settings_by_source.items()
    }
    config = web_config.load(file)
    server = _bind(listen, config)
    scheduled = [
        ScheduledSource(
            name,
            source_types[name].create(values),
            values["timeout"],
            values["interval"],
        )
        for name, values in settings.items()
    ]
    collector = SourceCollector(scheduled)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    scheme = "https" if config.tls else "http"
    click.echo(f"{', '.join(settings)}: {scheme}://{listen}/metrics", err=True)

    def metrics(timeout: float) -> bytes:
        return collector.expose(timeout) + generate_latest(registry)

    try:
        http_server.serve(server, metrics, [one.source.close for one in scheduled])
    except OSError as error:
        message = f"the state was not saved: {error}"
        raise click.ClickException(message) from error


def _bind(listen: str, config: web_config.WebConfig) -> http_server.Server:
    host, _, number = listen.rpartition(":")
    try:
        return http_server.make_server((host.strip("[]"), parse_port(number)), config)
    except ValueError as error:
        message = f"cannot listen on {listen}: {error}"
        raise SettingsError(message) from error
    except OSError as error:
        message = f"cannot listen on {listen}: {error.strerror}"
        raise click.ClickException(message) from error
