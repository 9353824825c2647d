"""Fixtures: a fake time source, real servers and Keystones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import backend_servers
import delay_injection
import pytest
from fake_time import FakeTime
from keystone_site import Processes, Site, prepare, write_configuration

from keylag_otel import environment, pure, wrappers
from keylag_otel.request_timer import (
    RequestTimer,
    set_time_source,
    start_timer,
    timer_var,
)
from keylag_otel.response import ResponseRecorder

try:
    from keylag_otel import _native
except ImportError as error:
    _native = None
    if not environment.pure_python():
        message = (
            "The native part is not compiled. Run `make setup-tests`, or set "
            "KEYLAG_PURE_PYTHON=true to test the pure part only."
        )
        raise pytest.UsageError(message) from error

NEEDS_C = pytest.mark.skipif(_native is None, reason="the native part is not compiled")


@pytest.fixture(
    params=[pure, pytest.param(_native, marks=NEEDS_C)], ids=["python", "c"]
)
def hot_path(request, monkeypatch) -> Any:
    """The pure and the native part in turn."""
    monkeypatch.setattr(ResponseRecorder, "hot_path", request.param)
    monkeypatch.setattr(wrappers, "wrap", request.param.wrap)
    monkeypatch.setattr(
        wrappers, "wrap_context_manager", request.param.wrap_context_manager
    )
    request.param.set_fault_handler(wrappers.count_fault)
    return request.param


@pytest.fixture
def time_source(hot_path) -> Iterator[FakeTime]:
    """The fake time source of the hot path."""
    fake = FakeTime()
    hot_path.set_time_source(fake)
    yield fake
    hot_path.set_time_source(None)


@pytest.fixture
def time() -> Iterator[FakeTime]:
    fake = FakeTime()
    set_time_source(fake)
    yield fake
    set_time_source(None)


@pytest.fixture
def active_timer(time: FakeTime) -> RequestTimer:
    """The current timer of a request."""
    del time
    started = start_timer({"REQUEST_METHOD": "GET"})
    started.current_cell = 0
    timer_var.set(started)
    yield started
    timer_var.set(None)


@pytest.fixture(autouse=True)
def no_active_timer() -> None:
    """No test starts or ends inside a request."""
    assert timer_var.get() is None
    yield
    assert timer_var.get() is None


@pytest.fixture(scope="session")
def processes() -> Processes:
    return Processes()


@pytest.fixture(scope="session")
def prepared(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Keystone that is set up but has not run."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(processes, folder)
    return folder


@pytest.fixture
def site(processes: Processes, prepared: Path, tmp_path: Path) -> Site:
    return Site(processes, prepared, tmp_path)


@pytest.fixture(scope="session")
def memcached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a memcached."""
    yield from backend_servers.memcached(tmp_path_factory.mktemp("memcached"))


@pytest.fixture(scope="session")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an LDAP directory."""
    yield from backend_servers.slapd(tmp_path_factory.mktemp("slapd"))


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis."""
    yield from backend_servers.redis(tmp_path_factory.mktemp("redis"))


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a MariaDB."""
    yield from backend_servers.mariadb(tmp_path_factory.mktemp("mariadb"))


_EFFECTS: pytest.StashKey[list[delay_injection.DelayEffect]] = pytest.StashKey()


@pytest.fixture(scope="session")
def delay_effects(pytestconfig: pytest.Config) -> list[delay_injection.DelayEffect]:
    """Effects of injected delays, for the summary of the test run."""
    return pytestconfig.stash.setdefault(_EFFECTS, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(_EFFECTS, [])
    if rows:
        terminalreporter.section("injected delays")
        terminalreporter.write_line("\n".join(delay_injection.table(rows)))


@pytest.fixture(scope="session")
def configuration(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a Keystone on SQLite."""
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
