"""Instrumenting once, twice, undone, again, and on untested releases."""

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
    """A library with one of two seams, and an instrumentor with both."""
    module = types.ModuleType("keylag_host")
    module.call = lambda: "answer"
    seams = tuple(Seam("keylag_host", name, (timed("sql"),)) for name in ("call", "no"))
    # There is one instrumentor in a process, and another test may be using it.
    monkeypatch.setattr(KeystoneInstrumentor, "_instance", None)
    monkeypatch.setattr(KeystoneInstrumentor, "_active", [])
    monkeypatch.setattr(patches, "_targets", [])
    monkeypatch.setattr(patches, "_decorated", {})
    monkeypatch.setattr(KeystoneInstrumentor, "seams", seams)
    monkeypatch.setitem(sys.modules, "keylag_host", module)
    state = {
        name: getattr(telemetry._State, name)
        for name in ("provider_at_start", "generation")
    }
    yield module
    process.stop()
    for name, value in state.items():
        setattr(telemetry._State, name, value)


def test_instrumenting_twice_wraps_once(host, caplog) -> None:
    original = host.call

    KeystoneInstrumentor().instrument()
    wrapper = host.call
    KeystoneInstrumentor().instrument()

    assert host.call is wrapper
    assert wrapper.__wrapped__ is original
    assert "already instrumented" in caplog.text


def test_uninstrument_restores_and_allows_instrumenting_again(host, caplog) -> None:
    original = host.call

    KeystoneInstrumentor().instrument()
    KeystoneInstrumentor().uninstrument()
    undone = host.call
    still_watched = process._on_collection in gc.callbacks
    KeystoneInstrumentor().uninstrument()
    KeystoneInstrumentor().instrument()

    assert undone is original
    assert not still_watched
    assert host.call.__wrapped__ is original
    assert "already uninstrumented" in caplog.text


@pytest.mark.parametrize(
    "version", ["99.0", "31.0.0.0rc1", "30.1.0.dev7", "22.0.2", "21.0.0"]
)
def test_untested_releases_are_bound_seam_by_seam(
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


def test_without_keystone_no_version_is_logged(monkeypatch) -> None:
    def missing(name: str) -> str:
        raise package.PackageNotFoundError(name)

    monkeypatch.setattr(package, "version", missing)

    assert package.untested_keystone() is None


class Live:
    """The part of a deployer's provider that Keylag uses."""

    def force_flush(self) -> bool:
        return True


def test_a_global_provider_of_this_process_is_used(host, monkeypatch) -> None:
    live = Live()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: live)
    KeystoneInstrumentor().instrument()

    assert telemetry._global_provider() is live


def test_global_provider_from_before_the_fork_is_ignored(
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
