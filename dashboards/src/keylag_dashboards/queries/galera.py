"""Queries of *Galera*: the sites' Keystones, and the nodes of their database."""

from collections.abc import Mapping
from typing import Final

NANOSECONDS: Final = "1e9"
_STATUS: Final = "mysql_global_status_wsrep_"


def _by_site(rate: str) -> str:
    return f"sum by (region, host_name, http_request_method) ({rate})"


_CALLS: Final = _by_site("""rate(http_server_request_duration_seconds_count{
    TOKENS_BY_ANY_METHOD}[RATE])""")
_SQL: Final = _by_site("""rate(keystone_request_phase_time_seconds_total{
    TOKENS_BY_ANY_METHOD, keystone_phase="sql"}[RATE])""")
_WALL: Final = _by_site("""rate(http_server_request_duration_seconds_sum{
    TOKENS_BY_ANY_METHOD}[RATE])""")
_STATEMENTS: Final = _by_site("""rate(keystone_request_sql_statements_total{
    TOKENS_BY_ANY_METHOD}[RATE])""")


def _status(name: str) -> str:
    return f"{_STATUS}{name}{{DATABASE}}"


def _by_node(query: str, members: str = _status("local_state")) -> str:
    """Return a query by the name of the node, which Prometheus has as `instance`.

    Servers outside of a cluster are left out: only Galera's library has a local state.
    """
    of_nodes = f"{query} and on (instance) {members}"
    named = f'label_replace({of_nodes}, "node", "$1", "instance", "(.+)")'
    return f"max by (node) ({named})"


def _message(statistic: str) -> str:
    """Return the time of messages of the nodes that sent some."""
    latency = "mysql_galera_evs_repl_latency"
    return _by_node(f"""{latency}_{statistic}_seconds{{DATABASE}}
        and on (instance) {latency}_sample_size{{DATABASE}} > 0""")


def _now(name: str) -> str:
    return _by_node(_status(name))


def _rate(name: str) -> str:
    return _by_node(f"rate({_status(name)}[RATE])")


_SERVES: Final = _now("cluster_status")
_DOWN: Final = _by_node(
    "(mysql_up{DATABASE} == 0)", f"last_over_time({_status('local_state')}[7d])"
)
"""0 for each node that does not run, and did in the last week."""

QUERIES: Final[Mapping[str, str]] = {
    "site_wall": f"{_WALL} / ({_CALLS} > 0)",
    "site_sql": f"{_SQL} / ({_CALLS} > 0)",
    "site_statement": f"{_SQL} / ({_STATEMENTS} > 0)",
    "serves": f"{_SERVES} or {_DOWN} - 1",
    "serving": f"sum({_SERVES} or {_DOWN})",
    "state": _now("local_state"),
    "seen": _now("cluster_size"),
    "to_apply": _now("local_recv_queue"),
    "to_send": _now("local_send_queue"),
    "paused": f"clamp_max({_rate('flow_control_paused_ns')} / {NANOSECONDS}, 1)",
    "pauses": _rate("flow_control_sent"),
    "message": _message("avg"),
    "slowest_message": _message("max"),
    "failures": _rate("local_cert_failures"),
    "aborts": _rate("local_bf_aborts"),
    "sync_waits": _rate("causal_reads"),
    "sent_bytes": _rate("replicated_bytes"),
    "received_bytes": _rate("received_bytes"),
}
