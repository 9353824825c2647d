"""Classifies the statements of a trace as pt-query-digest does.

keylag-exporter classifies them, as events of a slow log.  A class therefore has the
same id here, in the database's slow log and on the dashboards.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from keylag.trace.model import TraceError

_EVENT: Final = """\
# User@Host: keystone[keystone] @ localhost []
# Query_time: 0  Lock_time: 0  Rows_sent: 0  Rows_examined: 0
SET timestamp=0;
%s/*keylag:route='%d',operation=''*/;
"""
_TAG: Final = re.compile(r"/\*keylag:.*?\*/")
_PLACEHOLDER: Final = re.compile(r"%\(\w+\)s|%s|\?|(?<![:\w]):\w+")
_JOIN: Final = re.compile(r"\bjoin\b")


@dataclass(frozen=True, slots=True)
class StatementClass:
    """Statements that differ only in their values."""

    id: str
    statement: str
    """For people: tables, joins and predicates, without values."""
    fingerprint: str
    table_class: str

    @property
    def kind(self) -> str:
        """Its first word: SELECT, INSERT, ..."""
        return self.fingerprint.partition(" ")[0].upper()

    @property
    def joins(self) -> int:
        """Number of joins."""
        return len(_JOIN.findall(self.fingerprint))


def classify_statements(texts: Iterable[str]) -> dict[str, StatementClass]:
    """Return the class of each statement; raises TraceError on failure."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    log = "".join(
        _EVENT % (_bind_placeholders(text), n) for n, text in enumerate(distinct)
    )
    program = Path(sys.executable).with_name("keylag-exporter")
    result = subprocess.run(
        [program, "slow-log", "--once=-", "--output=json"],
        input=log.encode(),
        capture_output=True,
        check=False,
    )
    if result.returncode:
        message = f"{program}: {result.stderr.decode('utf-8', 'replace').strip()}"
        raise TraceError(message)
    return dict(_classes_by_text(distinct, json.loads(result.stdout)["classes"]))


def _bind_placeholders(text: str) -> str:
    return _PLACEHOLDER.sub("'x'", _TAG.sub("", text)).replace("%%", "%")


def _classes_by_text(
    texts: list[str], classes: Iterable[Mapping[str, object]]
) -> Iterable[tuple[str, StatementClass]]:
    # The route in a statement's comment is the number of its text.
    for one in classes:
        found = StatementClass(
            *(str(one[field.name]) for field in fields(StatementClass))
        )
        tags: Iterable[Mapping[str, str]] = one["by_tag"]  # type: ignore[assignment]
        for tag in tags:
            yield texts[int(tag["route"])], found
