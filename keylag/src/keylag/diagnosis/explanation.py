"""A rule in words: for `keylag diagnose --explain` and for docs/reference/causes.md."""

from collections.abc import Iterator

from keylag.diagnosis.measurements import MEASUREMENTS, SOURCES
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import Rule


def explain(rule: Rule) -> str:
    """Return the page of a rule, in Markdown."""
    return "\n".join(_lines(rule))


def _lines(rule: Rule) -> Iterator[str]:
    yield f"## {rule.id} {rule.name}"
    yield ""
    yield rule.cause
    yield ""
    yield f"**Gain.** {rule.gain}"
    yield ""
    yield f"**When it counts.** {rule.threshold}"
    yield ""
    yield "**Change**"
    yield ""
    for fix in rule.fixes:
        yield f"- {fix.file}: `{fix.line}`. Risk: {fix.risk}"
    if rule.explains:
        symptoms = ", ".join(f"{one} {RULES[one].name}" for one in rule.explains)
        yield ""
        yield f"**Explains** {symptoms}: with this cause they are only symptoms."
    yield ""
    board, _, panel = rule.panel.partition(": ")
    yield f"**Seen in** *{panel}* of the dashboard *{board}*."
    yield ""
    yield "**Asks Prometheus**"
    yield ""
    for name in rule.asks:
        one = MEASUREMENTS[name]
        yield f"- {one.text} ({SOURCES[one.source].install}):"
        yield f"  `{one.promql}`"
