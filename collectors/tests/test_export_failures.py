"""An unreachable endpoint is logged once; other exporters log as before."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keystone_stub
import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricsData
from otlp_endpoints import LOCAL, bad, free_port, healthy
from wsgi_servers import WORKERS, serving, until, uwsgi

from keylag_otel import export_failures, log_rate_limit, meter_provider

NOTHING = MetricsData([])
SPANS: list[Any] = []
#: Long enough for two attempts of the SDK, because its retry logs the reason.
SECONDS = "3"
FAILS = "keylag cannot export"


@pytest.fixture(autouse=True)
def eager(monkeypatch, caplog) -> Iterator[None]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", SECONDS)
    caplog.set_level(logging.INFO)
    yield
    log_rate_limit.remove_log_filters()


def exporter_to(url: str, monkeypatch, signal=meter_provider.METRICS) -> Any:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    (made,) = meter_provider.make_exporters(("otlp_proto_http",), signal)
    return made


@pytest.mark.parametrize(
    ("signal", "batch"),
    [(meter_provider.METRICS, NOTHING), (meter_provider.TRACES, SPANS)],
)
def test_outage_and_recovery_are_logged_once_each(
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
def test_log_has_the_root_cause(monkeypatch, caplog, kind, reason) -> None:
    with bad(kind) as url:
        exporter_to(url, monkeypatch).export(NOTHING)

    (said,) = caplog.messages
    start = f"{FAILS} metrics to {url}/v1/metrics: "
    assert re.match(f"{re.escape(start)}[^.]*({reason})", said)


def test_messages_of_other_exporters_are_kept(monkeypatch, caplog) -> None:
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


def test_password_in_the_address_is_not_logged(monkeypatch, caplog) -> None:
    address = f"http://me:secret@{LOCAL}:{free_port()}"
    exporter_to(address, monkeypatch).export(NOTHING)

    assert "secret" not in caplog.text
    assert f"http://{LOCAL}" in caplog.text


def test_raising_exporter_is_logged_like_a_failing_one(caplog) -> None:
    class Broken:
        def export(self, batch: Any) -> None:
            raise ValueError(batch) from OSError(28, "No space left on device")

    exports = export_failures.MonitoredExport(Broken(), "metrics")
    for _ in range(2):
        assert exports(1) is None

    (said,) = caplog.messages
    assert said.startswith(f"{FAILS} metrics to Broken: No space left on device. ")


def test_each_worker_logs_one_line(tmp_path: Path) -> None:
    with bad("refusing") as url:
        environment = {
            "PYTHONPATH": str(keystone_stub.write(tmp_path)),
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
