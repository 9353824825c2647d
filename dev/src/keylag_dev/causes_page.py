"""Writes what is made of the rules: causes.md, and causes.json of the dashboards.

    python -m keylag_dev.causes_page

The dashboards and alerts read the second one, because they do not need the command.
"""

import json
from typing import Final

from keylag.diagnosis import serving
from keylag.diagnosis.explanation import explain
from keylag.diagnosis.registry import RULES
from keylag.paths import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "reference" / "causes.md"
# Not from keylag_dashboards, which cannot be imported without this file.
FILE: Final = CHECKOUT / "dashboards" / "src" / "keylag_dashboards" / "causes.json"
INTRODUCTION: Final = """\
# Causes of slow authentication

<!-- Made by `python -m keylag_dev.causes_page`; change the rules instead. -->

`keylag diagnose` looks for these causes, and `keylag diagnose --explain ID` prints one
of these sections. A cause is a finding if it costs a sixth of a kind of calls: it has
made them a fifth slower. One that stalls few calls is a finding if it has doubled their
95th percentile.

In the queries, `TOKENS` selects token calls, `ALL` what `--match` selects, and
`WINDOW` is the length of the window.
"""


def render() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(f"{explain(one)}\n" for one in RULES.values())])


def render_file() -> str:
    """Return the file that the dashboards read."""
    causes = [
        {"id": one.id, "name": one.name, "cause": one.cause} for one in RULES.values()
    ]
    metrics = {
        "cost": serving.COST,
        "known": serving.KNOWN,
        "success": serving.SUCCESS,
    }
    return json.dumps({"metrics": metrics, "causes": causes}, indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    FILE.write_text(render_file(), encoding="utf-8")
