"""Tokens as a tree: what is in parentheses is a list of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from keylag_exporters.readable_sql.tokens import Name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Tree: TypeAlias = "list[str | Tree]"

ELLIPSIS = "…"
MAX_DEPTH = 12
"""Parentheses within parentheses that are read; the tree ends at the next ones."""

_NO_SPACE_BEFORE = (",", ":")


def nest(tokens: Iterable[str]) -> Tree:
    """Return the tree of any tokens; unpaired parentheses are tolerated."""
    tree: Tree = []
    open_lists = [tree]
    for one in tokens:
        if one == "(" and len(open_lists) > MAX_DEPTH:
            open_lists[-1].append(ELLIPSIS)
            break
        if one == "(":
            inner: Tree = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif one != ")":
            open_lists[-1].append(one)
        elif len(open_lists) > 1:
            open_lists.pop()
    return tree


def split(tree: Tree, separator: str) -> Iterator[Tree]:
    """Yield what is between separators; they do not count within parentheses."""
    part: Tree = []
    for one in tree:
        if one == separator:
            yield part
            part = []
        else:
            part.append(one)
    yield part


def rename(tree: Tree, new_name: Callable[[Name], Name]) -> Tree:
    """Return a tree with other names."""
    return [
        rename(one, new_name)
        if isinstance(one, list)
        else (new_name(one) if isinstance(one, Name) else one)
        for one in tree
    ]


def to_text(tree: Tree) -> str:
    """Return the text of a tree."""
    pieces: list[str] = []
    before: str | Tree = ""
    for one in tree:
        is_call = isinstance(one, list) and isinstance(before, Name)
        if pieces and not is_call and one not in _NO_SPACE_BEFORE:
            pieces.append(" ")
        pieces.append(one if isinstance(one, str) else f"({to_text(one)})")
        before = one
    return "".join(pieces)
