"""A slow node of a Galera cluster, which pauses the writes of both nodes."""

from collections.abc import Iterator
from typing import Final

from keylag.faults import cluster_writes, parts
from keylag.faults.changes.second_node import SecondNode
from keylag.faults.model import DELETE, Change, Fault, Strength, uses
from keylag.faults.site import Site

USUAL_LIMIT: Final = 16
"""Galera's own default of gcs.fc_limit."""
TRIGGER: Final = "keylag_slow_write"


def _pause_beyond(write_sets: int) -> str:
    return f"SET GLOBAL wsrep_provider_options = 'gcs.fc_limit={write_sets}'"


def _run_triggers(mode: str) -> str:
    return f"SET GLOBAL slave_run_triggers_for_rbr = {mode}"


def slow_node(milliseconds: float) -> list[str]:
    """Return statements that make a node sleep for each write, and pause the others."""
    trigger = (
        f"CREATE OR REPLACE TRIGGER {TRIGGER} BEFORE UPDATE "
        f"ON {cluster_writes.TABLE} FOR EACH ROW DO SLEEP({milliseconds / 1000:g})"
    )
    return [trigger, _run_triggers("ENFORCE"), _pause_beyond(1)]


def usual_node() -> list[str]:
    """Return the statements that take those of `slow_node` back."""
    drop = f"DROP TRIGGER IF EXISTS {TRIGGER}"
    return [_pause_beyond(USUAL_LIMIT), _run_triggers("NO"), drop]


def _changes(_: Site, milliseconds: float) -> Iterator[Change]:
    yield cluster_writes.table()
    yield SecondNode(slow_node(milliseconds), usual_node())
    yield cluster_writes.writes()


FAULT = Fault(
    id="D9",
    name="galera-flow-control",
    summary="A slow node of the Galera cluster pauses the writes of both nodes.",
    mechanism=(
        "A client writes all the time to a table of its own; a trigger on the second "
        "node sleeps for each write, and `gcs.fc_limit = 1`."
    ),
    slows=(DELETE,),
    strength=Strength(50, "ms for each write on the second node", 1, 10_000),
    uses=uses(parts.CLUSTER),
    needs=(parts.CLUSTERED,),
    changes=_changes,
)
