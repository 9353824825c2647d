"""What Keylag finds in this Python: which seams are there, and what is missing.

Run with Keystone's own interpreter.  Modules are imported, as Keystone imports
them; nothing is started, and what was looked at is left as it was.
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

from keylag_otel import provider, runtime
from keylag_otel.clock import COMPILED, REFUSED
from keylag_otel.environment import without_user_info
from keylag_otel.package import TRIED, untried_keystone
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
#: Variables whose values may let somebody in.
_SECRET = re.compile(r"HEADERS|PASSWORD|SECRET|TOKEN|CREDENTIAL|KEYS")


@dataclass(frozen=True)
class Finding:
    """One seam: ``bound``, ``missing`` or ``changed``, and why."""

    seam: str
    state: str
    optional: bool
    reason: str = ""

    @property
    def in_order(self) -> bool:
        """Return whether nothing is lost here that every release has."""
        return self.state == "bound" or (self.optional and self.state == "missing")


@dataclass(frozen=True)
class Report:
    """Everything that was found."""

    python: runtime.Runtime
    seams: list[Finding]
    versions: dict[str, str | None]
    environment: dict[str, str]
    advice: list[str]

    @property
    def in_order(self) -> bool:
        """Return whether every seam that is not optional is bound."""
        return all(finding.in_order for finding in self.seams)

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--output json`` prints."""
        return {"ok": self.in_order, **asdict(self)}


def check(seams: Iterable[Seam], environ: Mapping[str, str] = os.environ) -> Report:
    """Look at everything."""
    findings = look_at(seams)
    python = runtime.running()
    return Report(
        python=python,
        seams=findings,
        versions={name: installed(name) for name in DISTRIBUTIONS},
        environment=settings(environ),
        advice=[
            *runtime.advice(python),
            *_seam_advice(findings),
            *_cost_advice(),
            *_export_advice(environ),
            *_UNKNOWABLE,
        ],
    )


def look_at(seams: Iterable[Seam]) -> list[Finding]:
    """Try each seam where it is; Keystone reads the arguments it must not see."""
    argv, sys.argv = sys.argv, sys.argv[:1]
    log = logging.getLogger("keylag_otel")
    log.disabled, disabled = True, log.disabled
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [_look_at(seam) for seam in seams]
    finally:
        sys.argv = argv
        log.disabled = disabled


def _look_at(seam: Seam) -> Finding:
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


def installed(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that matter, without what is secret in them."""
    return {
        name: "(set)" if _SECRET.search(name) else without_user_info(value)
        for name, value in sorted(environ.items())
        if name.startswith(PREFIXES)
    }


_UNKNOWABLE = (
    "These are the variables of this shell; the server's own are what counts.",
    (
        "From here it cannot be known whether uWSGI runs threads: its configuration "
        "needs `enable-threads = true` (or `threads`), or workers export only when "
        "they end."
    ),
)


def _seam_advice(findings: list[Finding]) -> Iterator[str]:
    if installed("keystone") is None and installed("keystonemiddleware") is None:
        yield (
            "Neither Keystone nor keystonemiddleware is installed in this Python; "
            "run this with the interpreter that Keystone's or the service's server "
            "runs with."
        )
    elif untried_keystone():
        yield (
            f"This Keystone, {untried_keystone()}, is none of those that Keylag is "
            f"tested with ({TRIED[0]} to {TRIED[-1]}); what is bound is watched."
        )
    lost = Counter(each.state for each in findings if not each.in_order)
    if lost:
        yield (
            f"{sum(lost.values())} seams are not as they should be: requests are "
            "answered as ever, and the time spent there goes to whatever surrounds "
            "it. Please report this list."
        )


def _cost_advice() -> Iterator[str]:
    if COMPILED:
        yield "Calls are watched in C."
    elif REFUSED:
        yield f"Calls are watched in Python, which costs more than in C: {REFUSED}."
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield (
            "Calls are watched in Python, which costs more than in C: this Python has "
            "no GIL, and Keylag's C needs it."
        )
    else:
        yield (
            "Calls are watched in Python, which costs a request some per cent more "
            "than in C: install gcc and Python's headers, then keylag-otel again."
        )


def _export_advice(environ: Mapping[str, str]) -> Iterator[str]:
    names = provider.exporter_names(environ)
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield "OTEL_SDK_DISABLED switches all metrics off."
    if not names:
        yield "OTEL_METRICS_EXPORTER=none switches the export off."
    elif installed("opentelemetry-sdk") is None:
        yield (
            "The OpenTelemetry SDK is not installed, so nothing is exported: "
            "install keylag-otel[otlp]."
        )
    else:
        yield from _exporter_advice(names)


def _exporter_advice(names: tuple[str, ...]) -> Iterator[str]:
    try:
        provider.load_exporters(names)
    except Exception as error:
        yield f"Nothing can be exported: {error}."
