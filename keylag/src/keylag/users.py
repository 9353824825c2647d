"""The CSV of the users that a load asks tokens for."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

COLUMNS: Final = ("username", "password", "user_domain", "project", "project_domain")


def mistake(path: Path) -> str:
    """Say what is wrong with a file of users, with line and column; empty if nothing.

    JMeter would send what is missing as the name of its variable.
    """
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            found = next(_mistakes(stream), "")
    except FileNotFoundError:
        return f"There is no file of users {path}."
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        found = str(error)
    if not found:
        return ""
    columns = ",".join(COLUMNS)
    return f"{path} is no file of users: {found}. Its header has to be {columns}."


def _mistakes(stream: TextIO) -> Iterator[str]:
    rows = csv.reader(stream)
    header = next(rows, [])
    if not header:
        yield "line 1 is empty"
    if missing := [name for name in COLUMNS if name not in header]:
        yield f"line 1 lacks the columns {', '.join(missing)}"
    users = 0
    for users, row in enumerate(rows, start=1):  # noqa: B007 - counted
        yield from _of_row(header, row, rows.line_num)
    if not users:
        yield "there is no user below the header"


def _of_row(header: Sequence[str], row: Sequence[str], line: int) -> Iterator[str]:
    if len(row) != len(header):
        yield f"line {line} has {len(row)} values instead of {len(header)}"
    for name, value in zip(header, row, strict=False):
        if name in COLUMNS and not value:
            yield f"line {line}, column {name}, is empty"
