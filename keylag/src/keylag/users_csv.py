"""The CSV file of the users for whom a load requests tokens."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

COLUMNS: Final = ("username", "password", "user_domain", "project", "project_domain")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file, by column; raises OSError or UnicodeDecodeError."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def find_mistake(path: Path) -> str:
    """Return what is wrong with a CSV file, with line and column; empty if valid.

    Without this check JMeter sends the name of its variable for a missing value.
    """
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            mistake = next(_iter_mistakes(stream), "")
    except FileNotFoundError:
        return f"The file of users {path} does not exist."
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        mistake = str(error)
    if not mistake:
        return ""
    columns = ",".join(COLUMNS)
    return f"{path} is not a valid file of users: {mistake}. Header: {columns}."


def _iter_mistakes(stream: TextIO) -> Iterator[str]:
    rows = csv.reader(stream)
    header = next(rows, [])
    if not header:
        yield "line 1 is empty"
    if missing := [name for name in COLUMNS if name not in header]:
        yield f"line 1 lacks the columns {', '.join(missing)}"
    users = 0
    for users, row in enumerate(rows, start=1):  # noqa: B007 - counted
        yield from _row_mistakes(header, row, rows.line_num)
    if not users:
        yield "it has no users below the header"


def _row_mistakes(
    header: Sequence[str], row: Sequence[str], line: int
) -> Iterator[str]:
    if len(row) != len(header):
        yield f"line {line} has {len(row)} values instead of {len(header)}"
    for name, value in zip(header, row, strict=False):
        if name in COLUMNS and not value:
            yield f"line {line}, column {name}, is empty"
