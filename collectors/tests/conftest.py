"""A fake clock, real servers and Keystones, and a proof that no clock is left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted
import pytest
import servers
from fake_time import FakeTime
from keystone_site import Processes, Site, prepare, write_configuration

from keylag_otel import environment, pure, wrappers
from keylag_otel.answer import Answer
from keylag_otel.clock import Clock, active, read_with, start

try:
    from keylag_otel import _watch
except ImportError as error:
    _watch = None
    if not environment.pure_python():
        message = (
            "Keylag's C is not compiled, so half of it would go untested. Run "
            "`make setup-tests`, or set KEYLAG_PURE_PYTHON=true to leave it out."
        )
        raise pytest.UsageError(message) from error

NEEDS_C = pytest.mark.skipif(_watch is None, reason="the C part was not compiled")


@pytest.fixture(params=[pure, pytest.param(_watch, marks=NEEDS_C)], ids=["python", "c"])
def half(request, monkeypatch) -> Any:
    """What runs in each request, in Python and in C, in turn."""
    monkeypatch.setattr(Answer, "half", request.param)
    monkeypatch.setattr(wrappers, "watch", request.param.watch)
    monkeypatch.setattr(wrappers, "watch_body", request.param.watch_body)
    request.param.tell_faults(wrappers.fault)
    return request.param


@pytest.fixture
def half_time(half) -> Iterator[FakeTime]:
    """What a half reads the time by."""
    fake = FakeTime()
    half.read_with(fake)
    yield fake
    half.read_with(None)


@pytest.fixture
def time() -> Iterator[FakeTime]:
    fake = FakeTime()
    read_with(fake)
    yield fake
    read_with(None)


@pytest.fixture
def running(time: FakeTime) -> Clock:
    """The clock of a request that is being worked on."""
    del time
    started = start({"REQUEST_METHOD": "GET"})
    started.at = 0
    active.set(started)
    yield started
    active.set(None)


@pytest.fixture(autouse=True)
def no_clock_left() -> None:
    """No test starts or ends inside a request."""
    assert active.get() is None
    yield
    assert active.get() is None


@pytest.fixture(scope="session")
def processes() -> Processes:
    return Processes()


@pytest.fixture(scope="session")
def prepared(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Keystone that is set up and has not run yet."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(processes, folder)
    return folder


@pytest.fixture
def site(processes: Processes, prepared: Path, tmp_path: Path) -> Site:
    return Site(processes, prepared, tmp_path)


@pytest.fixture(scope="session")
def memcached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a memcached."""
    yield from servers.memcached(tmp_path_factory.mktemp("memcached"))


@pytest.fixture(scope="session")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an LDAP directory."""
    yield from servers.slapd(tmp_path_factory.mktemp("slapd"))


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis."""
    yield from servers.redis(tmp_path_factory.mktemp("redis"))


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a MariaDB."""
    yield from servers.mariadb(tmp_path_factory.mktemp("mariadb"))


_ROWS: pytest.StashKey[list[planted.Row]] = pytest.StashKey()


@pytest.fixture(scope="session")
def planted_rows(pytestconfig: pytest.Config) -> list[planted.Row]:
    """What was seen of planted delays; shown when all tests have run."""
    return pytestconfig.stash.setdefault(_ROWS, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(_ROWS, [])
    if rows:
        terminalreporter.section("planted delays")
        terminalreporter.write_line("\n".join(planted.table(rows)))


@pytest.fixture(scope="session")
def configuration(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a Keystone on SQLite, with all that it needs."""
    folder = tmp_path_factory.mktemp("keystone")
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    return write_configuration(folder)


@pytest.fixture(scope="module")
def keystone(configuration: Path) -> Iterator[Any]:
    """A client of Keystone's application, loaded as a WSGI server loads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_KEYSTONE_CONFIG_FILES", str(configuration))
        patch.setenv("OTEL_METRICS_EXPORTER", "none")
        patch.setenv("KEYLAG_SERVER_TIMING", "true")
        patch.setattr(sys, "argv", ["server", "--an-argument-keystone-does-not-know"])
        from werkzeug.test import Client

        from keylag_otel.wsgi import application

        yield Client(application)
