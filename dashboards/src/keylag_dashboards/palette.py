"""Colours of series: one for each category, method, share or part, in all panels.

They are those of Okabe and Ito, which colour-blind readers can tell apart, on dark and
on light pages.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from keylag_dashboards.categories import TITLES
from keylag_dashboards.config import COLORS

_SERIES: Final = tuple(
    COLORS[name]
    for name in (
        "sql",
        "password_hash",
        "cache",
        "revocation",
        "token_crypto",
        "orm",
        "other",
    )
)
_KNOWN: Final[Mapping[str, str]] = {
    **{title: COLORS[category] for category, title in TITLES.items()},
    "sql": COLORS["sql"],
    "sql pool": "#004a73",
    "orm": COLORS["orm"],
    "revocation match": COLORS["revocation"],
    "ldap": "#f0e442",
    **dict(
        zip(
            ("wsgi", "render", "policy", "schema", "timestamps", "notification"),
            ("#7d848b", "#a2a8ae", "#565c62", "#b9bec3", "#484d52", "#cfd3d6"),
            strict=True,
        )
    ),
    "matching": COLORS["revocation"],
    "keystone": COLORS["sql"],
    "the service itself": COLORS["orm"],
    "POST": COLORS["password_hash"],
    "GET": COLORS["sql"],
    "DELETE": COLORS["revocation"],
    "HEAD": COLORS["orm"],
    "hit": COLORS["cache"],
    "miss": COLORS["password_hash"],
}
"""Colours of names that label values give, or that have the same in every panel."""


def colors(legends: Iterable[str]) -> dict[str, str]:
    """Return the colours of a panel's series by name.

    Legends that come from labels have theirs if the value is known.
    """
    fixed = [legend for legend in legends if "{{" not in legend]
    unknown = [legend for legend in fixed if legend not in _KNOWN]
    chosen = dict(zip(unknown, _SERIES, strict=False))
    if len(fixed) < len(list(legends)):
        return {**_KNOWN, **chosen}
    return {legend: _KNOWN.get(legend) or chosen[legend] for legend in fixed}
