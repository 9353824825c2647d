"""Check which seams of the installed hosts can be bound.

Run with the interpreter of the host.  The check imports the host's modules, binds
each seam and unbinds it again; it starts nothing.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from keylag_otel import meter_provider, runtime
from keylag_otel.environment import strip_credentials
from keylag_otel.package import TESTED_KEYSTONES, untested_keystone
from keylag_otel.request_timer import IS_NATIVE, NATIVE_IMPORT_ERROR
from keylag_otel.seam import Binding, Seam

DISTRIBUTIONS = (
    *("keystone", "sqlalchemy", "oslo.db", "dogpile.cache", "oslo.cache"),
    *("oslo.policy", "flask", "keystonemiddleware", "keystoneauth1"),
    *("python-memcached", "keylag-otel", "wrapt"),
    *("opentelemetry-api", "opentelemetry-instrumentation", "opentelemetry-sdk"),
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-proto-grpc",
    *("uwsgi", "pyuwsgi", "gunicorn"),
)
PREFIXES = ("OTEL_", "KEYLAG_")
#: Names of variables whose values may be credentials.
_SECRET = re.compile(r"HEADERS|PASSWORD|SECRET|TOKEN|CREDENTIAL|KEYS")


@dataclass(frozen=True)
class Finding:
    """One seam: ``bound``, ``missing``, ``changed`` or ``failed``, and why."""

    seam: str
    state: str
    optional: bool
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the seam is bound, or optional and missing."""
        return self.state == "bound" or (self.optional and self.state == "missing")


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    python: runtime.Runtime
    seams: list[Finding]
    versions: dict[str, str | None]
    environment: dict[str, str]
    advice: list[str]

    @property
    def ok(self) -> bool:
        """Whether all findings are OK."""
        return all(finding.ok for finding in self.seams)

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--output json`` prints."""
        return {"ok": self.ok, **asdict(self)}


def check(seams: Iterable[Seam], environ: Mapping[str, str] = os.environ) -> Report:
    """Check seams, versions and variables."""
    findings = find_seams(seams)
    python = runtime.current_runtime()
    return Report(
        python=python,
        seams=findings,
        versions={name: installed_version(name) for name in DISTRIBUTIONS},
        environment=relevant_variables(environ),
        advice=[
            *runtime.advice(python),
            *_seam_advice(findings),
            *_cost_advice(),
            *_export_advice(environ),
            *_LIMITATIONS,
        ],
    )


def find_seams(seams: Iterable[Seam]) -> list[Finding]:
    """Bind and unbind each seam, quietly."""
    # Keystone parses the arguments of the process when it is imported.
    argv, sys.argv = sys.argv, sys.argv[:1]
    log = logging.getLogger("keylag_otel")
    log.disabled, disabled = True, log.disabled
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [_find_seam(seam) for seam in seams]
    finally:
        sys.argv = argv
        log.disabled = disabled


def _find_seam(seam: Seam) -> Finding:
    name = f"{seam.module}:{seam.path}"
    try:
        module = import_module(seam.module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return Finding(name, "missing", seam.optional, reason)
    binding = Binding(seam)
    binding.bind(module)
    finding = Finding(name, binding.state, seam.optional, binding.reason)
    binding.unbind()
    return finding


def installed_version(name: str) -> str | None:
    """Return the version of a distribution, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def relevant_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return OTEL_* and KEYLAG_* variables with their credentials removed."""
    return {
        name: "(set)" if _SECRET.search(name) else strip_credentials(value)
        for name, value in sorted(environ.items())
        if name.startswith(PREFIXES)
    }


_LIMITATIONS = (
    "The variables above are those of this shell; the server may have others.",
    (
        "uWSGI needs `enable-threads = true` (or `threads`) in its configuration, or "
        "workers export only when they end. This check cannot see that."
    ),
)


def _seam_advice(findings: list[Finding]) -> Iterator[str]:
    if (
        installed_version("keystone") is None
        and installed_version("keystonemiddleware") is None
    ):
        yield (
            "Neither Keystone nor keystonemiddleware is installed in this Python; "
            "run the check with the interpreter of Keystone's or the service's server."
        )
    elif untested_keystone():
        yield (
            f"Keylag is not tested with this Keystone, {untested_keystone()}, only "
            f"with {TESTED_KEYSTONES[0]} to {TESTED_KEYSTONES[-1]}; it "
            "measures the seams that are bound."
        )
    lost = Counter(each.state for each in findings if not each.ok)
    if lost:
        yield (
            f"{sum(lost.values())} seams are not bound. Requests work as before; the "
            "time spent there counts for the calls around them. Please report this "
            "list."
        )


def _cost_advice() -> Iterator[str]:
    if IS_NATIVE:
        yield "Calls are timed in C."
    elif NATIVE_IMPORT_ERROR:
        yield f"Calls are timed in Python, which costs more: {NATIVE_IMPORT_ERROR}."
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield (
            "Calls are timed in Python, which costs more than in C: this Python has "
            "no GIL, and Keylag's native part needs it."
        )
    else:
        yield (
            "Calls are timed in Python, which costs a request some per cent more than "
            "in C: install gcc and Python's headers, then reinstall keylag-otel."
        )


def _export_advice(environ: Mapping[str, str]) -> Iterator[str]:
    names = meter_provider.exporter_names(environ)
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield "OTEL_SDK_DISABLED disables all metrics."
    if not names:
        yield "OTEL_METRICS_EXPORTER=none disables the export."
    elif installed_version("opentelemetry-sdk") is None:
        yield (
            "The OpenTelemetry SDK is not installed, so no metrics are exported: "
            "install keylag-otel[otlp]."
        )
    else:
        yield from _exporter_advice(names)


def _exporter_advice(names: tuple[str, ...]) -> Iterator[str]:
    try:
        meter_provider.load_exporters(names)
    except Exception as error:
        yield f"No metrics can be exported: {error}."
