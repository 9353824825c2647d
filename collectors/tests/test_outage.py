"""An endpoint that is away is told once, and nobody else is silenced for that."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import standin
from endpoints import LOCAL, bad, free_port, healthy
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricsData
from wsgi_servers import WORKERS, serving, until, uwsgi

from keylag_otel import outage, provider, seldom

NOTHING = MetricsData([])
SPANS: list[Any] = []
#: Long enough that the SDK tries twice: it says why where it tries again.
SECONDS = "3"
FAILS = "keylag cannot export"


@pytest.fixture(autouse=True)
def eager(monkeypatch, caplog) -> Iterator[None]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", SECONDS)
    caplog.set_level(logging.INFO)
    yield
    seldom.hear_all()


def exporter_to(url: str, monkeypatch, signal=provider.METRICS) -> Any:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    (made,) = provider.make_exporters(("otlp_proto_http",), signal)
    return made


@pytest.mark.parametrize(
    ("signal", "batch"), [(provider.METRICS, NOTHING), (provider.TRACES, SPANS)]
)
def test_each_outage_is_told_once_and_its_end(
    monkeypatch, caplog, signal, batch
) -> None:
    port = free_port()
    address = f"http://{LOCAL}:{port}"
    exporter = exporter_to(address, monkeypatch, signal)
    for _ in range(2):
        for _ in range(2):
            exporter.export(batch)
        with healthy(port):
            for _ in range(2):
                exporter.export(batch)

    url = f"{address}/v1/{signal.name}"
    fails, works = caplog.messages[:2]
    assert fails.startswith(f"{FAILS} {signal.name} to {url}: Connection refused. ")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in fails
    assert f"OTEL_{signal.name.upper()}_EXPORTER=none" in fails
    assert works == f"keylag exports {signal.name} to {url} again"
    assert caplog.messages == [fails, works] * 2
    assert [each.levelname for each in caplog.records[:2]] == ["WARNING", "INFO"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("absent", "Name or service not known|name resolution"),
        ("hanging", "timeout|timed out"),
        # OpenTelemetry 1.27 tries for a minute, however short the time-out.
        pytest.param("overloaded", "Service Unavailable", marks=pytest.mark.newest),
        ("answering rubbish", r"\w+"),
    ],
)
def test_the_reason_is_what_is_behind_it(monkeypatch, caplog, kind, reason) -> None:
    with bad(kind) as url:
        exporter_to(url, monkeypatch).export(NOTHING)

    (said,) = caplog.messages
    start = f"{FAILS} metrics to {url}/v1/metrics: "
    assert re.match(f"{re.escape(start)}[^.]*({reason})", said)


def test_another_exporter_in_the_process_speaks_as_ever(monkeypatch, caplog) -> None:
    with bad("refusing") as url:
        exporter_to(url, monkeypatch).export(NOTHING)
        said = [each.name for each in caplog.records]
        try:
            OTLPMetricExporter().export(NOTHING)
        except OSError:
            # Some releases raise what others log.
            theirs = [OTLPMetricExporter.__module__]
        else:
            theirs = [e.name for e in caplog.records if e.levelname == "ERROR"]

    assert said == ["keylag_otel"]
    assert theirs == [OTLPMetricExporter.__module__]


def test_a_password_in_the_address_is_not_told(monkeypatch, caplog) -> None:
    address = f"http://me:secret@{LOCAL}:{free_port()}"
    exporter_to(address, monkeypatch).export(NOTHING)

    assert "secret" not in caplog.text
    assert f"http://{LOCAL}" in caplog.text


def test_an_exporter_that_raises_is_told_in_the_same_way(caplog) -> None:
    class Broken:
        def export(self, batch: Any) -> None:
            raise ValueError(batch) from OSError(28, "No space left on device")

    exports = outage.Exports(Broken(), "metrics")
    for _ in range(2):
        assert exports(1) is None

    (said,) = caplog.messages
    assert said.startswith(f"{FAILS} metrics to Broken: No space left on device. ")


def test_a_servers_log_has_one_line_of_each_worker(tmp_path: Path) -> None:
    with bad("refusing") as url:
        environment = {
            "PYTHONPATH": str(standin.write(tmp_path)),
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_TIMEOUT": SECONDS,
            "OTEL_METRIC_EXPORT_INTERVAL": "50",
        }
        log = tmp_path / "server.log"
        with serving(uwsgi(), log, environment) as server:
            server.request_of_each(10)
            until(lambda: log.read_text().count(FAILS) == WORKERS, f"{log} to tell")
            server.request_of_each(10)
            server.stop()

    text = log.read_text()
    assert text.count(FAILS) == WORKERS
    assert "Failed to export" not in text
    assert "Transient error" not in text
