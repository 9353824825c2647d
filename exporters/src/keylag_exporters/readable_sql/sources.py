"""The tables of FROM, and how they are joined."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keylag_exporters.readable_sql.tokens import Name
from keylag_exporters.readable_sql.tree import ELLIPSIS, Tree, rename

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_JOINS = ("JOIN", "STRAIGHT_JOIN", "LEFT", "RIGHT", "CROSS", "NATURAL", ",")
_COMPARISON = ("=", "AND")


@dataclass
class Source:
    """A table, a subquery, or joins in parentheses; `rest` is such as ON a = b."""

    join: Tree
    item: str | Tree
    alias: str = ""
    rest: Tree = field(default_factory=list)
    joined: list[Source] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The name of the table; empty if it is none."""
        return self.item if isinstance(self.item, Name) else ""


def parse_sources(tokens: Tree) -> list[Source]:
    """Return what FROM lists."""
    sources: list[Source] = []
    join: Tree = []
    for one in tokens:
        if one in _JOINS:
            join.append(one)
        elif join or not sources:
            is_join = isinstance(one, list) and "SELECT" not in one
            joined = parse_sources(one) if is_join else []  # type: ignore[arg-type]
            sources.append(Source(join, one, joined=joined))
            join = []
        else:
            _add(sources[-1], one)
    return sources


def _add(source: Source, one: str | Tree) -> None:
    """Add what follows a table: its alias, or more."""
    if source.alias or source.rest or not (one == "AS" or isinstance(one, Name)):
        source.rest.append(one)
    elif isinstance(one, Name):
        source.alias = one


def every_source(sources: Iterable[Source]) -> Iterator[Source]:
    """Yield all sources, including those in parentheses."""
    for one in sources:
        yield one
        yield from every_source(one.joined)


def rename_sources(
    sources: Iterable[Source], new_name: Callable[[Name], Name]
) -> list[Source]:
    """Return sources with other names in their conditions and subqueries."""
    return [
        replace(
            one,
            item=rename(one.item, new_name) if isinstance(one.item, list) else one.item,
            rest=rename(one.rest, new_name),
            joined=rename_sources(one.joined, new_name),
        )
        for one in sources
    ]


def write_sources(sources: Iterable[Source]) -> Tree:
    """Return the tokens; a condition that only compares columns is left out."""
    written: Tree = []
    for one in sources:
        written += [*one.join, write_sources(one.joined) if one.joined else one.item]
        written += ["AS", one.alias] if one.alias else []
        written += _shorten_condition(one.rest)
    return written


def _shorten_condition(rest: Tree) -> Tree:
    is_short = rest[:1] == ["ON"] and _compares_columns(rest[1:])
    return ["ON", ELLIPSIS] if is_short else rest


def _compares_columns(condition: Tree) -> bool:
    return all(
        _compares_columns(one)
        if isinstance(one, list)
        else isinstance(one, Name) or one in _COMPARISON
        for one in condition
    )
