"""Dashboard *Home*: is authentication healthy, and which dashboard explains it."""

from typing import Final

from keylag_dashboards.boards.answers import ANSWERS
from keylag_dashboards.config import BAD, GOOD, UID_PREFIX
from keylag_dashboards.model import Board, Column, Panel, Row, State
from keylag_dashboards.queries.home import QUERIES

_MAP: Final = {
    ("Token calls", "tokens"): "Which calls are slow, since when, in which category?",
    ("SQL", "sql"): "Is it the database, the way to it, or too many statements?",
    ("Galera", "galera"): "What does a cluster of databases cost each site?",
    ("Cache", "cache"): "Does the cache save time? Who empties it?",
    ("Revocation", "revocation"): "What do revocation events cost each check?",
    ("Workers", "workers"): "Are there free workers, and what do they do?",
    ("Host", "host"): "Is the machine too busy, and which program makes it so?",
    ("Services", "services"): "Who validates tokens, and what does it cost services?",
    ("Experiment", "experiment"): "Which arm is faster, and why?",
}


def _markdown() -> str:
    lines = ["| dashboard | question |", "|---|---|"]
    for (title, name), question in _MAP.items():
        url = f"/d/{UID_PREFIX}{name}?${{__url_time_range}}&${{__all_variables}}"
        lines.append(f"| [{title}]({url}) | {question} |")
    return "\n".join(lines)


NOW: Final = Row("All token calls", ANSWERS)
WHERE: Final = Row(
    "Where to look",
    (
        Panel(
            "Dashboards",
            "Start with *Token calls*: each panel links to the one that explains it.",
            "short",
            "text",
            {},
            height=11,
            text=_markdown(),
        ),
        Panel(
            "What reports",
            "Panels without their source are empty. `keylag-otel` counts workers, an"
            " exporter counts servers.",
            "short",
            "table",
            {"reporting": "reporters"},
            height=11,
            columns={
                "source": Column(),
                "needed by": Column(width=130),
                "reporting": Column(
                    width=105,
                    decimals=0,
                    states={
                        -1: State("not installed", "text"),
                        0: State("not reachable", BAD),
                    },
                ),
            },
        ),
        Panel(
            "Firing alerts",
            "Alerts that Prometheus evaluates. The runbook has a section for each.",
            "short",
            "table",
            {"state": "firing"},
            width=24,
            height=6,
            columns={
                "alert": Column(),
                "severity": Column(width=120),
                "job": Column(width=160),
                "state": Column(
                    width=120, states={0: State("quiet", GOOD), 1: State("firing", BAD)}
                ),
            },
        ),
    ),
)

BOARD: Final = Board(
    name="home",
    title="Keylag / Home",
    purpose="Is authentication healthy, and which dashboard explains it?",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method"),
    rows=(NOW, WHERE),
)
