"""Write docs/reference/metrics.md from the declarations in keylag_otel.

    python -m keylag_dev.metrics_page

A test compares the result with the committed page.
"""

from collections.abc import Iterable

from keylag.state import CHECKOUT
from keylag_dashboards.metrics import instruments_by_kind, prometheus_name
from keylag_otel.auth_token import instruments as auth_token
from keylag_otel.authentication import COMBINATIONS, METHODS, MULTIPLE, OTHER
from keylag_otel.instruments import COUNTERS, OVERFLOW
from keylag_otel.model import OPERATIONS, PHASES
from keylag_otel.request_aggregator import AGGREGATE_LIMIT

PAGE = CHECKOUT / "docs" / "reference" / "metrics.md"

COUNTED = frozenset((*COUNTERS.values(), *auth_token.COUNTERS.values()))
LABELS = (*METHODS, *COMBINATIONS.values(), MULTIPLE, OTHER)

INTRODUCTION = """\
# Metrics of keylag-otel

<!-- Made by `python -m keylag_dev.metrics_page`; change the declarations instead. -->

All attributes come from closed sets: series do not grow with users or tokens,
nor with whatever clients send.
A worker keeps at most {rows} combinations of method, route, status and
authentication method, and of each other counter as many series as the last column
says; what is beyond a limit is one series more, with `{overflow}="true"`.
The Prometheus name is what the Collector's Prometheus exporter makes of it.
"""


def page() -> str:
    """Return the page."""
    introduction = INTRODUCTION.format(rows=AGGREGATE_LIMIT, overflow=OVERFLOW)
    lines = [
        introduction,
        "| metric | Prometheus | kind | unit | what | attributes | limit |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for instrument, kind in instruments_by_kind():
        attributes = ", ".join(f"`{name}`" for name in instrument.attributes)
        lines.append(
            f"| `{instrument.name}` | `{prometheus_name(instrument, kind)}` | {kind} "
            f"| {instrument.unit} | {instrument.description} | {attributes} "
            f"| {instrument.limit if instrument in COUNTED else ''} |"
        )
    lines += ["", f"`keystone.phase` is one of {_listed(PHASES)}."]
    lines += ["", f"`keystone.auth.method` is one of {_listed(LABELS)}."]
    lines += ["", f"`keystone.operation` is one of {_listed(OPERATIONS)}."]
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
