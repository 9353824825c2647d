"""D7: statements wait in ProxySQL for a connection to the database."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

NEW: Final = 0.1
"""Requests that find no connection and get a new one, at most, for each statement.

One that waits asks again and again.
"""


def _judge(case: Case) -> Suspicion | str:
    inside = case.facts.number("log_seconds")
    through = case.facts.number("proxysql_seconds")
    timeouts = case.facts.number("proxysql_timeouts")
    waits = case.facts.number("proxysql_waits")
    statements = case.facts.number("log_calls")
    if not statements:
        return "The slow log has no statement of this time."
    if waits <= NEW * statements and not timeouts:
        return "Statements found a connection of ProxySQL at once."
    share = max(1 - inside / through, 0.0) if through else 0.0

    def waited(one: Calls) -> float:
        return share * one.spent(["sql"])

    evidence = [
        Evidence("requests that found no connection", waits, "/s", "proxysql_waits", 0),
        Evidence("statements that timed out", timeouts, "/s", "proxysql_timeouts", 0),
        Evidence("time in ProxySQL", through, "s/s", "proxysql_seconds"),
        Evidence("of it in the database", inside, "s/s", "log_seconds"),
    ]
    return Suspicion(savings(case, waited), evidence)


RULE: Final = Rule(
    id="D7",
    name="proxysql",
    cause="Statements wait in ProxySQL for a connection to the database.",
    judge=_judge,
    asks=(
        "log_seconds",
        "log_calls",
        "proxysql_seconds",
        "proxysql_timeouts",
        "proxysql_waits",
    ),
    fixes=(
        Fix(
            "ProxySQL",
            "UPDATE mysql_servers SET max_connections = N WHERE hostgroup_id = H; LOAD"
            " MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK",
            "The sum of all proxies must stay within the database's max_connections.",
        ),
        Fix(
            "ProxySQL",
            "find the sessions that keep a connection: stats_mysql_processlist",
            "None.",
        ),
    ),
    gain="The time in ProxySQL that is not in the database.",
    threshold="A tenth as many requests as statements found no connection, or one"
    " timed out: fewer open a new one, while one that waits asks again and again. The"
    " time in ProxySQL says what that costs.",
    panel="sql: Backend requests",
    explains=("D1", "D2", "D5"),
)
