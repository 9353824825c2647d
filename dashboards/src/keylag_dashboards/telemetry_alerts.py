"""Alerts on missing telemetry: calls, metrics, hosts, exporters.

An alert that compares a rate with a limit is silent without samples. These alerts
compare the present with the last day instead, and fire for up to a day.
"""

from typing import Final

from keylag_dashboards.model import Alert

LOOKBACK: Final = "1d"
"""Range in which an alert searches for past telemetry."""
STEADY_CALLS: Final = 0.1
"""Calls per second above which five minutes without calls are significant."""
STEADY_SHARE: Final = 0.75
"""Share of the last day in which the rate was above STEADY_CALLS."""
MIN_SUCCESS_SHARE: Final = 0.5
"""Share of the scrapes of ten minutes in which a source must succeed."""

KEYSTONE_METRICS: Final = (
    "http_server_request_duration_seconds_count",
    "keystone_cache_memoized_calls_total",
    "keystone_request_cache_calls_total",
    "keystone_request_phase_time_seconds_total",
    "keystone_sql_pool_checkouts_total",
)
"""Metrics that a Keystone with traffic always sends; other alerts need them."""

TELEMETRY_ALERTS: Final[tuple[Alert, ...]] = (
    Alert(
        "KeylagTokenCallsStopped",
        "page",
        "5m",
        f"""quantile_over_time({round(1 - STEADY_SHARE, 6)},
            keylag:token_calls:rate5m[{LOOKBACK}]) > {STEADY_CALLS}
            unless on (JOB, http_request_method) keylag:token_calls:rate5m > 0""",
        "{{ $labels.job }} no longer completes {{ $labels.http_request_method }}"
        " calls for tokens.",
        'Usually it completes more than {{ $value | printf "%.2f" }} per second.',
        "tokens: Calls per second",
        ("C3", "D4", "L1", "N1"),
    ),
    Alert(
        "KeylagKeystoneSilent",
        "page",
        "5m",
        f"""group by (JOB) (last_over_time(keystone_configuration_info[{LOOKBACK}]))
            unless on (JOB) keystone_configuration_info
            or on () absent(keystone_configuration_info)""",
        "No metrics from Keystone{{ with $labels.job }} {{ . }}{{ end }}.",
        "All other alerts on its metrics are silent.",
        "home: What reports",
    ),
    Alert(
        "KeylagKeystoneHostSilent",
        "ticket",
        "10m",
        f"""quantile_over_time(0.5, keylag:keystone_hosts:count[{LOOKBACK}])
            - keylag:keystone_hosts:count > 0""",
        "Some hosts of {{ $labels.job }} send no metrics.",
        "{{ $value }} fewer than in most of the last day.",
        "home: What reports",
    ),
    Alert(
        "KeylagMetricMissing",
        "ticket",
        "15m",
        f"""last_over_time(keylag:keystone_metric:present[{LOOKBACK}])
            unless keylag:keystone_metric:present
            and on (JOB) keystone_configuration_info""",
        "{{ $labels.job }} no longer sends {{ $labels.metric }}.",
        "Panels and alerts on this metric have no data.",
        "workers: Faults and failures",
    ),
    Alert(
        "KeylagExporterBlind",
        "ticket",
        "5m",
        f"""avg_over_time(keylag_exporter_source_success[10m]) < {MIN_SUCCESS_SHARE}
            or keylag:exporter_source:seen and on (JOB, instance) up == 0
            or keylag:exporter_source:seen
            unless on (JOB, source) keylag_exporter_source_success""",
        "The exporter {{ $labels.instance }} cannot read {{ $labels.source }}.",
        "Panels and alerts on {{ $labels.source }} have no new data.",
        "workers: Success of sources",
    ),
)
