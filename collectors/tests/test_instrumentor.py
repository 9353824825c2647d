"""Instrumenting: once, twice, undone, again, and on releases nobody knows."""

from __future__ import annotations

import gc
import sys
import types

import pytest
from opentelemetry import metrics

from keylag_otel import KeystoneInstrumentor, package, patches, process, telemetry
from keylag_otel.seam import Seam
from keylag_otel.wrappers import timed


@pytest.fixture
def host(monkeypatch) -> types.ModuleType:
    """A library with one of two seams, and an instrumentor that knows both."""
    module = types.ModuleType("keylag_host")
    module.call = lambda: "answer"
    seams = tuple(Seam("keylag_host", name, (timed("sql"),)) for name in ("call", "no"))
    # There is one instrumentor in a process, and another test may be using it.
    monkeypatch.setattr(KeystoneInstrumentor, "_instance", None)
    monkeypatch.setattr(KeystoneInstrumentor, "_watching", [])
    monkeypatch.setattr(patches, "_targets", [])
    monkeypatch.setattr(patches, "_decorated", {})
    monkeypatch.setattr(KeystoneInstrumentor, "seams", seams)
    monkeypatch.setitem(sys.modules, "keylag_host", module)
    state = {name: getattr(telemetry._Process, name) for name in ("early", "number")}
    yield module
    process.unwatch()
    for name, value in state.items():
        setattr(telemetry._Process, name, value)


def test_instrumenting_twice_watches_once(host, caplog) -> None:
    original = host.call

    KeystoneInstrumentor().instrument()
    watched = host.call
    KeystoneInstrumentor().instrument()

    assert host.call is watched
    assert watched.__wrapped__ is original
    assert "already instrumented" in caplog.text


def test_what_is_uninstrumented_is_as_it_was_and_can_be_instrumented_again(
    host, caplog
) -> None:
    original = host.call

    KeystoneInstrumentor().instrument()
    KeystoneInstrumentor().uninstrument()
    undone = host.call
    still_watched = process._around in gc.callbacks
    KeystoneInstrumentor().uninstrument()
    KeystoneInstrumentor().instrument()

    assert undone is original
    assert not still_watched
    assert host.call.__wrapped__ is original
    assert "already uninstrumented" in caplog.text


@pytest.mark.parametrize(
    "version", ["99.0", "31.0.0.0rc1", "30.1.0.dev7", "22.0.2", "21.0.0"]
)
def test_every_release_is_bound_seam_by_seam(
    host, monkeypatch, caplog, version
) -> None:
    from importlib import metadata

    real = metadata.version

    def installed(name: str) -> str:
        return version if name == "keystone" else real(name)

    monkeypatch.setattr(package, "version", installed)
    # Not every release of OpenTelemetry imports it by name.
    theirs = "opentelemetry.instrumentation.dependencies"
    monkeypatch.setattr(f"{theirs}.version", installed, raising=False)

    KeystoneInstrumentor().instrument()

    states = [binding.state for binding in KeystoneInstrumentor().bindings]
    assert states == ["bound", "missing"]
    assert "keylag_host:no" in caplog.text
    assert (f"Keystone {version}" in caplog.text) == (
        not version.startswith(("30", "22"))
    )


def test_without_a_keystone_nothing_is_said_of_its_version(monkeypatch) -> None:
    def missing(name: str) -> str:
        raise package.PackageNotFoundError(name)

    monkeypatch.setattr(package, "version", missing)

    assert package.untried_keystone() is None


class Live:
    """A provider that somebody has set, as far as ours asks it."""

    def force_flush(self) -> bool:
        return True


def test_a_global_provider_of_this_process_is_used(host, monkeypatch) -> None:
    live = Live()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: live)
    KeystoneInstrumentor().instrument()

    assert telemetry._global_provider() is live


def test_a_global_provider_of_before_the_fork_is_left_alone(
    host, monkeypatch, caplog
) -> None:
    live = Live()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: live)
    KeystoneInstrumentor().instrument()
    monkeypatch.setattr("os.getpid", lambda: -1)
    caplog.set_level("INFO")

    assert telemetry._global_provider() is None
    assert "meter_provider=" in caplog.text
    # Nor has this process been forked as Python would know of it.
    assert "py-call-osafterfork" in caplog.text
