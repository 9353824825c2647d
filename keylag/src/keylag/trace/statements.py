"""Statements of a trace, put into the classes that pt-query-digest would.

keylag-exporter does it, which is given a slow log of them: so a class has the same
id here, in the database's log and on the dashboards.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    """Statements that differ in their values alone."""

    id: str
    fingerprint: str
    table_class: str

    @property
    def kind(self) -> str:
        """Its first word: SELECT, INSERT, ..."""
        return self.fingerprint.partition(" ")[0].upper()

    @property
    def joins(self) -> int:
        """How many tables it joins to its first one."""
        return len(_JOIN.findall(self.fingerprint))


def classes_of(texts: Iterable[str]) -> dict[str, StatementClass]:
    """Return the class of each text; raises TraceError if it cannot be told."""
    known = list(dict.fromkeys(texts))
    if not known:
        return {}
    log = "".join(_EVENT % (_filled(text), n) for n, text in enumerate(known))
    program = Path(sys.executable).with_name("keylag-exporter")
    said = subprocess.run(
        [program, "slow-log", "--once=-", "--output=json"],
        input=log.encode(),
        capture_output=True,
        check=False,
    )
    if said.returncode:
        message = f"{program}: {said.stderr.decode('utf-8', 'replace').strip()}"
        raise TraceError(message)
    return dict(_placed(known, json.loads(said.stdout)["classes"]))


def _filled(text: str) -> str:
    """Put a value where one was bound, as the database is sent it."""
    return _PLACEHOLDER.sub("'x'", _TAG.sub("", text)).replace("%%", "%")


def _placed(
    texts: list[str], classes: Iterable[Mapping[str, object]]
) -> Iterable[tuple[str, StatementClass]]:
    """Give each text with the class in which its number is found."""
    for one in classes:
        found = StatementClass(
            str(one["id"]), str(one["fingerprint"]), str(one["table_class"])
        )
        tags: Iterable[Mapping[str, str]] = one["by_tag"]  # type: ignore[assignment]
        for tag in tags:
            yield texts[int(tag["route"])], found
