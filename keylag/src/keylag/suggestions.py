"""Suggestions for mistyped names."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar known word; empty if none is similar."""
    found = get_close_matches(word, known, n=1)
    return f" Did you mean `{found[0]}`?" if found else ""
