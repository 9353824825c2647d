"""Writes the causes in docs/runbook.md, from the alerts and the registry of rules.

    python -m keylag_dev.runbook_page

Between two comments the page is made by this module; all else is written by hand.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import Rule
from keylag.paths import CHECKOUT
from keylag_dashboards.alerts import ALERTS

PAGE: Final = CHECKOUT / "docs" / "runbook.md"
BLOCK: Final = re.compile(
    r"(<!-- causes of (\w+), by `python -m keylag_dev.runbook_page` -->\n)"
    r".*?(<!-- end of causes -->)",
    re.DOTALL,
)
ALL: Final = "all"
"""The block with all causes; the others have the name of an alert."""


def render(text: str) -> str:
    """Return the page with its causes replaced."""
    return BLOCK.sub(
        lambda found: "\n".join([found[1], *_block(found[2]), "", found[3]]), text
    )


def _block(name: str) -> Iterator[str]:
    if name == ALL:
        yield from _table(RULES.values())
        return
    alert = next(one for one in ALERTS if one.name == name)
    if set(alert.causes) == RULES.keys():
        yield "It may have any of the [causes](#causes)."
        return
    yield "It may have one of these causes:"
    yield ""
    yield from _table(RULES[one] for one in alert.causes)


def _table(rules: Iterable[Rule]) -> Iterator[str]:
    yield "| cause | what it is | what to change, and its risk |"
    yield "|---|---|---|"
    for one in rules:
        changes = "<br>".join(
            f"{fix.file}: `{fix.line}`. Risk: {fix.risk}" for fix in one.fixes
        )
        yield f"| {link(one)} | {one.cause} | {changes} |"


def link(rule: Rule) -> str:
    """Return a link to the section of a cause."""
    title = f"{rule.id} {rule.name}"
    return f"[{title}](reference/causes.md#{title.lower().replace(' ', '-')})"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
