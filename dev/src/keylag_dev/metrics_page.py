"""Generates docs/reference/metrics.md from the declarations in keylag_otel.

    python -m keylag_dev.metrics_page

tests/test_reference.py compares the result with the committed page.
"""

from collections.abc import Iterable

from keylag.paths import CHECKOUT
from keylag_dashboards.metrics import instruments_by_kind, prometheus_name
from keylag_otel.auth_token import instruments as auth_token
from keylag_otel.authentication import COMBINATIONS, METHODS, MULTIPLE, OTHER
from keylag_otel.instruments import COUNTERS, OVERFLOW
from keylag_otel.model import OPERATIONS, PHASES
from keylag_otel.request_aggregator import AGGREGATE_LIMIT

PAGE = CHECKOUT / "docs" / "reference" / "metrics.md"

LIMITED = frozenset((*COUNTERS.values(), *auth_token.COUNTERS.values()))
AUTH_METHODS = (*METHODS, *COMBINATIONS.values(), MULTIPLE, OTHER)

INTRODUCTION = """\
# Metrics of keylag-otel

<!-- Made by `python -m keylag_dev.metrics_page`; change the declarations instead. -->

All attributes come from closed sets or from Keystone's configuration: the number of
series is independent of users, tokens and requests.
A worker keeps at most {rows} combinations of method, route, status and authentication
method. The last column is the cardinality limit of each other counter. Values beyond a
limit go to one overflow series with `{overflow}="true"`.
The Prometheus name is that of the Collector's Prometheus exporter.
"""


def page() -> str:
    """Return the Markdown of the page."""
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
            f"| {instrument.limit if instrument in LIMITED else ''} |"
        )
    lines += ["", f"`keystone.phase` is one of {_join_names(PHASES)}."]
    lines += ["", f"`keystone.auth.method` is one of {_join_names(AUTH_METHODS)}."]
    lines += ["", f"`keystone.operation` is one of {_join_names(OPERATIONS)}."]
    return "\n".join(lines) + "\n"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
