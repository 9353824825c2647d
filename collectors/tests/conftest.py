"""A fake clock, and a proof after each test that it left nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from keystone_site import configure

from keylag_otel import clock, wrappers
from keylag_otel.clock import Clock, active


class FakeTime:
    """Time that passes only when a test says so; nanoseconds."""

    def __init__(self) -> None:
        self.value = 1_000

    def __call__(self) -> int:
        return self.value

    def passes(self, nanoseconds: int) -> None:
        self.value += nanoseconds


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a Keystone on SQLite, with all that it needs."""
    return configure(tmp_path_factory.mktemp("keystone"))


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(clock, "now", fake)
    monkeypatch.setattr(wrappers, "now", fake)
    return fake


@pytest.fixture
def running(time: FakeTime) -> Clock:
    """The clock of a request that is being worked on."""
    del time
    started = Clock()
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
