"""Under each server, each worker exports, and each request counts once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keystone_stub
import pytest
from apache import APACHE, Apache, apache, skip_without_apache
from otlp_endpoints import Sink, healthy
from wsgi_servers import BIN, WORKERS, Server, gunicorn, serving, until, uwsgi

from keylag_otel import environment

#: Independent of the release of Keystone.
pytestmark = [pytest.mark.newest, pytest.mark.matrix]

THREADS = ("--worker-class", "gthread", "--threads", "4")

#: The command that starts it, and the number of processes that load the application.
SERVERS: dict[str, tuple[list[Any], int]] = {
    "uwsgi": (uwsgi(), 1),
    "uwsgi with lazy-apps": (uwsgi("--lazy-apps"), WORKERS),
    "uwsgi with threads": (uwsgi("--threads", "4"), 1),
    "gunicorn": (gunicorn(), WORKERS),
    "gunicorn with preload": (gunicorn("--preload"), 1),
    "gunicorn with threads": (gunicorn(*THREADS), WORKERS),
    "gunicorn with threads and preload": (gunicorn("--preload", *THREADS), 1),
    "mod_wsgi": (apache(threads=1), WORKERS),
    "mod_wsgi with threads": (apache(threads=4), WORKERS),
}
RELOADED = (
    *("uwsgi", "uwsgi with lazy-apps", "uwsgi with threads", "gunicorn"),
    *("mod_wsgi", "mod_wsgi with threads"),
)


@contextmanager
def exporting(
    command: list[Any], folder: Path, **environment: str
) -> Iterator[tuple[Server, Sink]]:
    """A server, and what its workers export.

    They export only at their end: what arrives has survived it.  A busy machine
    may take its time.
    """
    kind = Server
    if APACHE in command:
        skip_without_apache()
        kind = Apache
    with healthy() as sink:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
            "KEYLAG_LAST_EXPORT_SECONDS": "20",
            **environment,
        }
        log = folder / "server.log"
        with serving(command, log, variables, kind=kind) as server:
            yield server, sink


@contextmanager
def started(
    command: list[Any], folder: Path, loads: int, **environment: str
) -> Iterator[tuple[Server, Sink]]:
    """A server of the stub, when every worker has loaded it."""
    path = str(keystone_stub.write(folder))
    with exporting(command, folder, PYTHONPATH=path, **environment) as (server, sink):
        wait_for_loads(folder, loads)
        yield server, sink


def wait_for_loads(folder: Path, loads: int) -> None:
    until(lambda: len(list(folder.glob("loaded-*"))) >= loads, "it to be loaded")


@pytest.mark.parametrize("name", SERVERS)
def test_every_worker_exports_and_each_request_is_counted_once(tmp_path, name) -> None:
    command, loads = SERVERS[name]

    with started(command, tmp_path, loads) as (server, sink):
        server.request_of_each(40)
        server.stop()

    assert len(sink.workers) == WORKERS, server.tail()
    assert sink.requests == server.sent


@pytest.mark.parametrize("name", RELOADED)
def test_graceful_reload_loses_nothing_and_keeps_instance_ids(tmp_path, name) -> None:
    command, loads = SERVERS[name]

    with started(command, tmp_path, loads) as (server, sink):
        server.request_of_each(40)
        server.reload()
        # uWSGI executes itself, in the same process when it loads only once.
        wait_for_loads(tmp_path, 2 * loads if loads > 1 else 1)
        server.request_of_each(40)
        server.stop()

    generations = sum(map(len, sink.workers.values()))
    assert generations == 2 * WORKERS
    assert len(sink.workers) == (WORKERS if "uwsgi" in name else generations)
    assert sink.requests == server.sent


def test_recycled_workers_lose_nothing_and_keep_instance_ids(tmp_path) -> None:
    often = ("--max-requests", "15", "--min-worker-lifetime", "0")

    with started(uwsgi(*often, "--processes", "1"), tmp_path, 1) as (server, sink):
        server.request_often(35)
        server.stop()

    assert [len(starts) for starts in sink.workers.values()] == [3]
    assert sink.requests == server.sent


def test_recycled_workers_of_mod_wsgi_lose_nothing(tmp_path) -> None:
    often = apache(processes=1, threads=1, maximum_requests=15)

    with started(often, tmp_path, 1) as (server, sink):
        server.request_often(35)
        server.stop()

    assert len(sink.workers) == 3
    assert sink.requests == server.sent


REAL = ("uwsgi", "gunicorn with threads and preload", "mod_wsgi")


@pytest.mark.parametrize("name", REAL)
def test_workers_of_a_real_keystone_export(configuration, tmp_path, name) -> None:
    variables = {"OS_KEYSTONE_CONFIG_FILES": str(configuration)}

    with exporting(SERVERS[name][0], tmp_path, **variables) as (server, sink):
        server.request_often(40)
        server.stop()

    assert 1 <= len(sink.workers) <= WORKERS, server.tail()
    assert sink.requests == server.sent


AUTO = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRICS_EXPORTER": "otlp",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
KEYSTONES_OWN = "keystone.wsgi.api:application"
INSTRUMENTED = {
    "uwsgi": (uwsgi("--py-call-osafterfork", module=KEYSTONES_OWN), 1),
    "uwsgi with lazy-apps": (
        uwsgi("--py-call-osafterfork", "--lazy-apps", module=KEYSTONES_OWN),
        WORKERS,
    ),
    "gunicorn": (gunicorn(module=KEYSTONES_OWN), WORKERS),
    "gunicorn with preload": (gunicorn("--preload", module=KEYSTONES_OWN), 1),
}


@pytest.mark.parametrize("name", INSTRUMENTED)
def test_every_worker_exports_with_opentelemetry_instrument(tmp_path, name) -> None:
    command, loads = INSTRUMENTED[name]
    ours = [BIN / "opentelemetry-instrument", *command]

    with started(ours, tmp_path, loads, **AUTO) as (server, sink):
        server.request_of_each(40)
        server.stop()

    assert len(sink.workers) == WORKERS, server.tail()
    assert sink.requests == server.sent


PYIMPORT = "opentelemetry.instrumentation.auto_instrumentation.sitecustomize"


def test_uwsgi_loads_keylag_by_a_variable(tmp_path) -> None:
    command = uwsgi("--lazy-apps", module=KEYSTONES_OWN)
    variables = {**AUTO, "UWSGI_PYIMPORT": PYIMPORT}

    with started(command, tmp_path, WORKERS, **variables) as (server, sink):
        server.request_of_each(40)
        server.stop()

    assert len(sink.workers) == WORKERS, server.tail()
    assert sink.requests == server.sent


def test_mod_wsgi_subinterpreter_uses_the_pure_part(tmp_path) -> None:
    command = apache(group="keystone", processes=1, threads=1)

    with started(command, tmp_path, 1) as (server, sink):
        server.request_often(20)
        server.stop()

    assert sink.requests == server.sent
    if not environment.pure_python():
        said = server.log.read_text().count("keylag times calls in Python")
        assert said == 1, server.tail()


OUR_FILE = "from keylag_otel.wsgi import application\n"
THEIR_FILE = """
from keylag_otel import KeystoneInstrumentor

KeystoneInstrumentor().instrument()

from keystone.server.wsgi import initialize_public_application

application = initialize_public_application()
"""


@pytest.mark.parametrize("text", [OUR_FILE, THEIR_FILE], ids=["ours", "theirs"])
def test_mod_wsgi_script_exports_from_all_threads(
    configuration, tmp_path, text
) -> None:
    (tmp_path / "keystone.wsgi").write_text(text)
    command = apache("$FOLDER/keystone.wsgi", threads=4)
    variables = {"OS_KEYSTONE_CONFIG_FILES": str(configuration)}

    with exporting(command, tmp_path, **variables) as (server, sink):
        server.request_often(40)
        server.stop()

    assert 1 <= len(sink.workers) <= WORKERS, server.tail()
    assert sink.requests == server.sent
