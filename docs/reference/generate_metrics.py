"""Write docs/reference/metrics.md from the declarations in keylag_otel.

    python docs/reference/generate_metrics.py

A test compares the result with the committed page.
"""

from pathlib import Path

from keylag_dashboards.metrics import instruments_by_kind, prometheus_name
from keylag_otel.model import OPERATIONS, PHASES

PAGE = Path(__file__).with_name("metrics.md")

INTRODUCTION = """\
# Metrics of keylag-otel

<!-- Made by docs/reference/generate_metrics.py; change the declarations instead. -->

All attributes come from closed sets: series do not grow with users or tokens.
The Prometheus name is what the Collector's Prometheus exporter makes of it.
"""


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION, "| metric | Prometheus | kind | unit | what | attributes |"]
    lines.append("|---|---|---|---|---|---|")
    for instrument, kind in instruments_by_kind():
        attributes = ", ".join(f"`{name}`" for name in instrument.attributes)
        lines.append(
            f"| `{instrument.name}` | `{prometheus_name(instrument, kind)}` | {kind} "
            f"| {instrument.unit} | {instrument.description} | {attributes} |"
        )
    lines += ["", f"`keystone.phase` is one of {_listed(PHASES)}."]
    lines += ["", f"`keystone.operation` is one of {_listed(OPERATIONS)}."]
    return "\n".join(lines) + "\n"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
