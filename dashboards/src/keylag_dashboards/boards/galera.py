"""Dashboard *Galera*: what the cluster of the database costs each site's Keystone."""

from typing import Final

from keylag_dashboards.config import BAD, GOOD, NEUTRAL, WARNING
from keylag_dashboards.model import Board, Column, Panel, Row, State
from keylag_dashboards.queries.galera import QUERIES

_NO_CLUSTER: Final = "the database is no Galera cluster"
_SITE: Final = "{{region}} {{host_name}} {{http_request_method}}"
_MESSAGE: Final = "galera: Message to all nodes"
LEAST_PAUSED: Final = 0.01
"""From this share of the time on, pauses are the cause D9."""

SITES: Final = Row(
    "Keystone, by site",
    (
        Panel(
            "Mean time of a call",
            "By region and controller. Only one site is slow: look at its way to the"
            " database. Only DELETE is slow: its commits wait for the other site.",
            "s",
            "lines",
            {_SITE: "site_wall"},
            width=8,
            explained_by=("galera: SQL time of a call", "tokens: Latency"),
        ),
        Panel(
            "SQL time of a call",
            "What a call waits for statements and commits. A commit waits until all"
            " nodes have the write.",
            "s",
            "lines",
            {_SITE: "site_sql"},
            width=8,
            explained_by=(_MESSAGE, "galera: Paused by flow control"),
        ),
        Panel(
            "SQL time of a statement",
            "A few milliseconds more than usual in all statements: the node is far, or"
            " reads wait for the cluster (wsrep_sync_wait).",
            "s",
            "lines",
            {_SITE: "site_statement"},
            width=8,
            explained_by=(
                "galera: Statements that waited",
                "sql: Outside the database",
            ),
        ),
    ),
)

NODES: Final = Row(
    "Nodes",
    (
        Panel(
            "Nodes",
            "A node that does not serve has lost quorum (non-Primary), and refuses"
            " statements; one that is down ended within a week. A donor copies its"
            " data to another node, and may accept no writes. nodes: how many it sees.",
            "short",
            "table",
            {
                "serves": "serves",
                "state": "state",
                "nodes": "seen",
                "to apply": "to_apply",
                "to send": "to_send",
            },
            width=16,
            # Nodes that are down, or serve nobody, come first.
            sorted_by="serves",
            columns={
                "node": Column(),
                "serves": Column(
                    width=100,
                    states={
                        -1: State("down", BAD),
                        0: State("no", BAD),
                        1: State("yes", GOOD),
                    },
                ),
                "state": Column(
                    width=110,
                    states={
                        0: State("undefined", BAD),
                        1: State("joining", WARNING),
                        2: State("donor", WARNING),
                        3: State("joined", NEUTRAL),
                        4: State("synced", GOOD),
                    },
                ),
                **dict.fromkeys(
                    ("nodes", "to apply", "to send"), Column("locale", 90, 0)
                ),
            },
            empty_reason=_NO_CLUSTER,
        ),
        Panel(
            "Nodes that serve",
            "How many serve, and how many each of them sees. Fewer: a node ended, or"
            " cannot be reached. None serves: no half of the cluster is a majority.",
            "short",
            "lines",
            {"serve": "serving", "seen by {{node}}": "seen"},
            width=8,
            height=7,
            empty_reason=_NO_CLUSTER,
            explained_by=("galera: Nodes",),
        ),
        Panel(
            "Message to all nodes",
            "Mean time until all nodes have a message of this one; of the last ones"
            " since the node's status was flushed. A commit cannot be faster.",
            "s",
            "lines",
            {"{{node}}": "message"},
            width=8,
            empty_reason=_NO_CLUSTER,
            explained_by=("galera: SQL time of a call",),
        ),
        Panel(
            "Longest message",
            "Far above the mean: packets are lost on the way, or a node stalls.",
            "s",
            "lines",
            {"{{node}}": "slowest_message"},
            width=8,
            empty_reason=_NO_CLUSTER,
            explained_by=("galera: Nodes",),
        ),
        Panel(
            "Statements that waited",
            "Reads that waited for the cluster first, per second: wsrep_sync_wait. Each"
            " of them costs a message to all nodes.",
            "ops",
            "lines",
            {"{{node}}": "sync_waits"},
            width=8,
            empty_reason=_NO_CLUSTER,
            explained_by=(_MESSAGE,),
        ),
    ),
    source="mysql",
)

REPLICATION: Final = Row(
    "Replication",
    (
        Panel(
            "Paused by flow control",
            "Share of the time in which no node of the cluster committed, because one"
            " had too much to apply. From 1 % on, find out who asked for it.",
            "percentunit",
            "lines",
            {"{{node}}": "paused"},
            width=8,
            thresholds={LEAST_PAUSED: WARNING},
            empty_reason=_NO_CLUSTER,
            explained_by=("galera: Pauses asked for",),
        ),
        Panel(
            "Pauses asked for",
            "By the node that asked: it is the slow one. Look at its disk and CPU, and"
            " at wsrep_slave_threads.",
            "ops",
            "lines",
            {"{{node}}": "pauses"},
            width=8,
            empty_reason=_NO_CLUSTER,
            explained_by=("galera: Nodes", "host: Time of a request"),
        ),
        Panel(
            "Conflicts",
            "Writes of the same rows at several nodes: a transaction failed when it"
            " committed, or a write of another node aborted it. Keystone repeats some,"
            " and fails the call of others. Let all Keystones write to one node.",
            "ops",
            "lines",
            {
                "failed at commit, {{node}}": "failures",
                "aborted, {{node}}": "aborts",
            },
            width=8,
            empty_reason=_NO_CLUSTER,
            explained_by=("sql: Errors and retries",),
        ),
        Panel(
            "Sent to the cluster",
            "Bytes of write sets of this node. Over a narrow link, segments send them"
            " once for each site.",
            "Bps",
            "lines",
            {"{{node}}": "sent_bytes"},
            empty_reason=_NO_CLUSTER,
        ),
        Panel(
            "Received from the cluster",
            "Bytes of write sets of other nodes.",
            "Bps",
            "lines",
            {"{{node}}": "received_bytes"},
            empty_reason=_NO_CLUSTER,
        ),
    ),
    source="mysql",
)

BOARD: Final = Board(
    name="galera",
    title="Keylag / Galera",
    purpose="What a cluster of databases, near or far, costs each site's Keystone.",
    queries=QUERIES,
    # No method: its usual choice leaves out DELETE, whose commits wait.
    variables=("cluster", "region", "job", "host", "database"),
    rows=(SITES, NODES, REPLICATION),
)
