"""The clauses of a SELECT, with its aliases and its first subquery resolved."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keylag_exporters.readable_sql.sources import (
    Source,
    every_source,
    parse_sources,
    rename_sources,
    write_sources,
)
from keylag_exporters.readable_sql.tokens import Name
from keylag_exporters.readable_sql.tree import ELLIPSIS, Tree, rename, split

if TYPE_CHECKING:
    from collections.abc import Callable

_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK")


@dataclass
class Select:
    """One SELECT; `rest` is all that follows WHERE, with its keywords."""

    head: Tree
    columns: Tree
    sources: list[Source]
    where: Tree
    rest: Tree

    def renamed(self, new_name: Callable[[Name], Name]) -> Select:
        """Return this SELECT with other names of columns."""
        return Select(
            self.head,
            rename(self.columns, new_name),
            rename_sources(self.sources, new_name),
            rename(self.where, new_name),
            rename(self.rest, new_name),
        )

    def written(self) -> Tree:
        """Return the tokens; two columns or more are left out."""
        first, *more = split(self.columns, ",")
        columns = [ELLIPSIS] if more else _without_alias(first)
        tokens = [*self.head, "SELECT", *(columns if self.sources else self.columns)]
        tokens += ["FROM", *write_sources(self.sources)] if self.sources else []
        tokens += ["WHERE", *self.where] if self.where else []
        return [*tokens, *self.rest]


def parse_select(tokens: Tree) -> Select | None:
    """Return the SELECT in these tokens, if any."""
    if "SELECT" not in tokens:
        return None
    start = tokens.index("SELECT")
    clauses: dict[str, Tree] = {"SELECT": [], "FROM": [], "WHERE": [], "rest": []}
    clause = "SELECT"
    for one in tokens[start + 1 :]:
        if one in ("FROM", "WHERE") and clause != "rest":
            clause = str(one)
        else:
            clause = "rest" if one in _CLAUSES else clause
            clauses[clause].append(one)
    columns, sources, where, rest = clauses.values()
    select = Select(tokens[:start], columns, parse_sources(sources), where, rest)
    return _resolve_aliases(_merge_subquery(select))


def _merge_subquery(outer: Select) -> Select:
    """Merge the subquery that FROM begins with, if all it does is to filter."""
    first, *others = outer.sources or [Source([], "")]
    inner = parse_select(first.item) if isinstance(first.item, list) else None
    if inner is None or inner.head or inner.rest or "UNION" in first.item:
        return outer
    columns = _columns_by_name(inner.columns)
    if not columns or first.rest or _tables(inner.sources) & _tables(others):
        return outer
    names = {f"{first.alias}.{name}": column for name, column in columns.items()}
    merged = replace(outer, sources=others).renamed(lambda one: names.get(one, one))
    merged.sources = [*inner.sources, *merged.sources]
    merged.where = _both(inner.where, merged.where)
    return merged


def _columns_by_name(columns: Tree) -> dict[str, Name]:
    """Return the columns of a subquery; nothing if one is not a plain column."""
    found: dict[str, Name] = {}
    for tokens in split(columns, ","):
        names = [one for one in tokens if isinstance(one, Name)]
        if len(names) not in (1, 2) or len(tokens) > len(names) + tokens.count("AS"):
            return {}
        found[names[-1].column] = names[0]
    return found


def _both(first: Tree, second: Tree) -> Tree:
    if not first or not second:
        return [*first, *second]
    return [*_and_operand(first), "AND", *_and_operand(second)]


def _and_operand(condition: Tree) -> Tree:
    return [condition] if "OR" in condition else condition


def _tables(sources: list[Source]) -> Counter[str]:
    return Counter(one.table for one in every_source(sources) if one.table)


def _resolve_aliases(select: Select) -> Select:
    """Replace the alias of each table that occurs once by its name."""
    counts = _tables(select.sources)
    tables: dict[str, str] = {}
    for one in every_source(select.sources):
        if one.alias and counts[one.table] == 1:
            tables[one.alias] = one.table
            one.alias = ""
    return select.renamed(lambda one: one.moved(tables))


def _without_alias(column: Tree) -> Tree:
    return column[: column.index("AS")] if "AS" in column else column
