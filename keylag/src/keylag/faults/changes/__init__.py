"""The kinds of changes that faults consist of; the journal stores them by name."""

from collections.abc import Callable, Mapping
from typing import Final

from keylag.faults.changes.cache import FlushedCache
from keylag.faults.changes.directory import Directory
from keylag.faults.changes.front import RelayInFront
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.keys import KeyFolder
from keylag.faults.changes.limited import Limited
from keylag.faults.changes.options import Options
from keylag.faults.changes.passwords import RehashedPasswords
from keylag.faults.changes.second_node import SecondNode
from keylag.faults.changes.signals import (
    MayBeSuspended,
    RestartAfterwards,
    Stopped,
    Suspended,
)
from keylag.faults.changes.slow_keys import SlowKeys
from keylag.faults.changes.sql import ProxySql, Sql
from keylag.faults.changes.table import ReplacedTable
from keylag.faults.model import Change

KINDS: Final[Mapping[str, Callable[..., Change]]] = {
    kind.__name__: kind
    for kind in (
        Directory,
        FlushedCache,
        Helper,
        KeyFolder,
        Limited,
        MayBeSuspended,
        Options,
        ProxySql,
        RehashedPasswords,
        RelayInFront,
        ReplacedTable,
        RestartAfterwards,
        SecondNode,
        SlowKeys,
        Sql,
        Stopped,
        Suspended,
    )
}
