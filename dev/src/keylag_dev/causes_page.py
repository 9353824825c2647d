"""Generates docs/reference/causes.md, the causes that `keylag diagnose` knows.

python -m keylag_dev.causes_page
"""

from typing import Final

from keylag.diagnosis.explanation import explain
from keylag.diagnosis.registry import RULES
from keylag.paths import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "reference" / "causes.md"
INTRODUCTION: Final = """\
# Causes of slow authentication

<!-- Made by `python -m keylag_dev.causes_page`; change the rules instead. -->

`keylag diagnose` looks for these causes, and `keylag diagnose --explain ID` prints one
of these sections. A cause is a finding if it costs a sixth of a kind of calls: it has
made them a fifth slower.

In the queries, `TOKENS` selects token calls, `ALL` what `--match` selects, and
`WINDOW` is the length of the window.
"""


def render() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(f"{explain(one)}\n" for one in RULES.values())])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
