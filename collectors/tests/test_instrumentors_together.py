"""Two instrumentors in one process: providers and shutdown."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from keylag_otel import meter_provider, telemetry
from keylag_otel.instrumentor import SeamInstrumentor
from keylag_otel.seam import Seam
from keylag_otel.traces import tracing
from keylag_otel.wrappers import timed

METERS, TRACERS = object(), object()


class Both:
    """Two instrumentors with their own hosts, and the providers that they request."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.first, self.second = (self._made(name) for name in ("first", "second"))

    @staticmethod
    def _made(name: str) -> SeamInstrumentor:
        members = {
            "seams": (Seam(f"keylag_{name}", "call", (timed("sql"),)),),
            "host": f"keylag_{name}",
            "instrumentation_dependencies": lambda _: [],
        }
        return type(name, (SeamInstrumentor,), members)()

    def note(self, *what: Any) -> Any:
        return lambda *args: self.asked.append((*what, *args))


@pytest.fixture
def both(monkeypatch) -> Both:
    monkeypatch.setattr(SeamInstrumentor, "_active", [])
    made = Both()
    monkeypatch.setattr(telemetry, "use_provider", made.note("meters"))
    monkeypatch.setattr(tracing, "use_provider", made.note("tracers"))
    monkeypatch.setattr(telemetry, "stop", made.note("stop"))
    monkeypatch.setattr(meter_provider, "import_exporters", made.note("prepare"))
    return made


@pytest.fixture
def hosts(tmp_path, monkeypatch) -> None:
    """Modules of both hosts, which can be imported."""
    for name in ("first", "second"):
        (tmp_path / f"keylag_{name}.py").write_text("def call(): ...\n")
        monkeypatch.delitem(sys.modules, f"keylag_{name}", raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def test_instrumentors_use_their_given_providers(both) -> None:
    both.first.instrument(meter_provider=METERS, tracer_provider=TRACERS)

    assert both.asked == [("meters", METERS), ("tracers", TRACERS)]


def test_second_instrumentor_keeps_the_providers_of_the_first(both) -> None:
    both.first.instrument(meter_provider=METERS)
    both.second.instrument(tracer_provider=TRACERS)

    assert both.asked == [("meters", METERS), ("tracers", None), ("tracers", TRACERS)]


@pytest.mark.parametrize("signal", [telemetry, tracing], ids=["meter", "tracer"])
def test_unusable_provider_is_logged(both, monkeypatch, caplog, signal) -> None:
    monkeypatch.setattr(signal, "use_provider", lambda _: 1 / 0)

    both.first.instrument()

    name = "meter_provider" if signal is telemetry else "tracer_provider"
    assert (
        f"keylag could not use the {name}; the service continues without it"
        in caplog.text
    )
    assert both.first.bindings


def test_exporters_are_imported_with_a_host(both, hosts) -> None:
    both.first.instrument()
    both.second.instrument()
    both.asked.clear()

    import keylag_first

    both.second.uninstrument()
    import keylag_second

    assert isinstance(keylag_first, types.ModuleType)
    assert isinstance(keylag_second, types.ModuleType)
    assert both.asked == [("prepare",)]


def test_last_instrumentor_stops_the_exports(both) -> None:
    both.first.instrument()
    both.second.instrument()
    both.asked.clear()

    both.first.uninstrument()
    still = list(both.asked)
    both.second.uninstrument()

    assert (still, both.asked) == ([], [("stop",)])
    assert (both.first.bindings, both.second.bindings) == ([], [])


def test_failure_to_stop_exports_is_logged(both, monkeypatch, caplog) -> None:
    both.first.instrument()
    monkeypatch.setattr(telemetry, "stop", lambda: 1 / 0)

    both.first.uninstrument()

    assert (
        "keylag could not stop its exporters; the service continues without it"
        in caplog.text
    )
