"""The changes of each fault, on a stack that records them."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from keylag.faults.changes import KINDS, slow_keys
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.keys import FOLDER, KeyFolder
from keylag.faults.changes.options import Options
from keylag.faults.changes.passwords import SAVED, RehashedPasswords
from keylag.faults.changes.slow_keys import SlowKeys
from keylag.faults.changes.sql import ProxySql, Sql
from keylag.faults.changes.table import ReplacedTable
from keylag.faults.journal import Journal
from keylag.faults.model import Change, FaultError
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.processes import find_processes
from keylag.services.base import StackOptions
from keylag.stack_record import load_secrets
from keylag.state import write_private

Rows = list[tuple[Any, ...]]
ANSWERS: dict[str, Rows] = {
    "FROM project, local_user, role": [("p", "u", "r")],
    "information_schema": [("ix_one",), ("ix_two",)],
    "SELECT user.id": [("a",), ("b",)],
}
"""Rows by a part of the query."""


class RecordingSite:
    """A site that records statements and answers queries."""

    def __init__(self, folder: Path, answers: dict[str, Rows] | None = None) -> None:
        self.folder = folder
        self.options = StackOptions(cache="memcache_pool")
        self.ports = {"memcached": 11211, "second-memcached": 11212}
        self.secrets = load_secrets(folder / "data")
        self.statements: list[str] = []
        self.rows: list[Sequence[Any]] = []
        self._answers = ANSWERS if answers is None else answers
        self._ports = iter(range(20000, 21000))

    fernet_keys = Site.fernet_keys
    environment = Site.environment

    def address(self, port: str) -> str:
        return f"127.0.0.1:{port}"

    def free_address(self) -> str:
        return f"127.0.0.1:{next(self._ports)}"

    def database_url(self, address: str) -> str:
        return f"mysql://{address}"

    def query(self, statement: str) -> Rows:
        found = [rows for part, rows in self._answers.items() if part in statement]
        return found[0] if found else []

    def execute(self, statements: Sequence[str]) -> None:
        self.statements += statements

    administer_proxysql = administer_second_node = execute

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.statements.append(statement)
        self.rows += rows

    def processes(self, _: str) -> list[str]:
        return ["one"]


def as_site(recording: RecordingSite) -> Site:
    """Return it as what it stands for."""
    return cast("Site", recording)


def changes(key: str, folder: Path, strength: float | None = None) -> list[Change]:
    """Return the changes of a fault."""
    fault = FAULTS[key]
    value = fault.strength.default if strength is None else strength
    return list(fault.changes(as_site(RecordingSite(folder)), value))


@pytest.mark.parametrize("key", FAULTS)
def test_the_journal_stores_each_change(tmp_path: Path, key: str) -> None:
    made = changes(key, tmp_path)
    journal = Journal(tmp_path)
    begun = journal.begin(FAULTS[key], 1.0, 0.0)
    for change in made:
        journal.add(begun, change)

    again = list(Journal(tmp_path).changes())

    assert made
    assert {type(one).__name__ for one in made} <= KINDS.keys()
    assert _plain(again) == _plain(made)


def _plain(found: list[Change]) -> str:
    return json.dumps([vars(one) for one in found], default=str)


@pytest.mark.parametrize("key", FAULTS)
def test_statements_that_insert_have_statements_that_delete(
    tmp_path: Path, key: str
) -> None:
    for change in changes(key, tmp_path):
        if isinstance(change, Sql):
            tables = _tables(change.statements, r"INSERT (?:IGNORE )?INTO (\w+)")
            deleted = _tables(change.undo_statements, r"DELETE.*?FROM (\w+)")
            assert tables <= deleted


def _tables(statements: Sequence[str], pattern: str) -> set[str]:
    return set(re.findall(pattern, " ".join(statements)))


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("C1", "cache", "null"),
        ("C7", "cache", "redis"),
        ("C5", "memcached", {"memory-limit": "2"}),
        ("C6", "memcached", {"conn-limit": "7"}),
        ("W1", "processes", 7),
        ("W3", "threads", 7),
        (
            "D5",
            "environment",
            {"OS_DATABASE__MAX_POOL_SIZE": "7", "OS_DATABASE__MAX_OVERFLOW": "0"},
        ),
        ("D6", "environment", {"OS_DATABASE__CONNECTION_RECYCLE_TIME": "7"}),
        ("M1", "service", {"OS_KEYSTONE_AUTHTOKEN__TOKEN_CACHE_TIME": "7"}),
    ],
)
def test_strengths_become_options(
    tmp_path: Path, key: str, name: str, value: object
) -> None:
    (options,) = (one for one in changes(key, tmp_path, 7) if isinstance(one, Options))

    assert getattr(options.on_top_of(StackOptions()), name) == value


def test_a_replaced_table_returns_with_new_rows(tmp_path: Path) -> None:
    (change,) = changes("D3", tmp_path, 10)
    assert isinstance(change, ReplacedTable)
    site = RecordingSite(tmp_path, {"keylag_saved_password": [("one",)]})

    change.apply(as_site(site))
    applied, site.statements = site.statements, []
    change.undo(as_site(site))

    assert "ALTER TABLE keylag_altered_password DROP INDEX local_user_id" in applied
    assert applied[-1] == (
        "RENAME TABLE password TO keylag_saved_password, "
        "keylag_altered_password TO password"
    )
    dropped, moved, renamed, dropped_again = site.statements
    assert dropped == dropped_again == "DROP TABLE IF EXISTS keylag_altered_password"
    assert moved == (
        "INSERT IGNORE INTO keylag_saved_password SELECT * FROM password "
        "WHERE NOT (local_user_id >= 1000000000)"
    )
    assert renamed == (
        "RENAME TABLE password TO keylag_altered_password, "
        "keylag_saved_password TO password"
    )


def test_a_table_that_was_not_replaced_stays(tmp_path: Path) -> None:
    (change,) = changes("R2", tmp_path)
    site = RecordingSite(tmp_path, {})

    change.undo(as_site(site))

    assert site.statements == ["DROP TABLE IF EXISTS keylag_altered_revocation_event"]


def test_old_keys_are_between_the_staged_and_the_primary_key(tmp_path: Path) -> None:
    site = RecordingSite(tmp_path)
    own = tmp_path / "data" / "keystone" / "fernet-keys"
    own.mkdir(parents=True)
    for name, text in (("0", "staged"), ("9", "secondary"), ("10", "primary")):
        (own / name).write_text(text)

    KeyFolder(3).apply(as_site(site))

    made = {file.name: file.read_text() for file in (tmp_path / FOLDER).iterdir()}
    assert [made[str(number)] for number in (0, 4, 5)] == [
        *("staged", "secondary", "primary")
    ]
    assert {len(made[str(number)]) for number in (1, 2, 3)} == {44}
    KeyFolder(3).undo(as_site(site))
    KeyFolder(3).undo(as_site(site))
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.skipif(
    not (shutil.which("bindfs") and os.access("/dev/fuse", os.W_OK)),
    reason="there is no `bindfs` on the PATH, or no /dev/fuse",
)
def test_keys_are_read_through_a_mount_that_goes_away(tmp_path: Path) -> None:
    site = RecordingSite(tmp_path)
    own = tmp_path / "data" / "keystone" / "fernet-keys"
    own.mkdir(parents=True)
    (own / "0").write_text("staged")
    shown = tmp_path / slow_keys.FOLDER

    SlowKeys(10).apply(as_site(site))

    started = time.monotonic()
    assert {(shown / "0").read_text() for _ in range(6)} == {"staged"}
    assert time.monotonic() - started > 0.1
    assert shown.is_mount()
    assert len(find_processes(stack=tmp_path, service=slow_keys.PROCESS)) == 1
    SlowKeys(10).undo(as_site(site))
    SlowKeys(10).undo(as_site(site))
    assert not shown.exists()
    assert (own / "0").exists()


def test_keys_that_cannot_be_mounted_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_keys, "find_program", lambda *_: Path("/bin/false"))
    change = SlowKeys(10)

    with pytest.raises(FaultError, match="/dev/fuse"):
        change.apply(as_site(RecordingSite(tmp_path)))

    change.undo(as_site(RecordingSite(tmp_path)))
    assert not (tmp_path / slow_keys.FOLDER).exists()


def test_passwords_of_known_users_are_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    write_private(tmp_path / "data" / "secrets.json", '{"admin": "secret"}')
    accounts = [("admin", "Default", 1, "old"), ("stranger", "Default", 2, "other")]
    site = RecordingSite(tmp_path, {"FROM password": accounts, SAVED: [("one",)]})
    monkeypatch.setattr(
        RehashedPasswords, "_hash", lambda _, __, passwords: [f"new {passwords[0]}"]
    )

    change = RehashedPasswords(13)
    change.apply(as_site(site))
    change.undo(as_site(site))

    assert site.rows == [(1, "old", "new secret")]
    assert site.statements[-2].endswith("password.password_hash = saved.new_hash")
    assert site.statements[-1] == f"DROP TABLE {SAVED}"


def test_each_node_knows_its_own_cache_server_only(tmp_path: Path) -> None:
    (change,) = changes("C9", tmp_path)
    assert isinstance(change, Options)

    options = change.on_top_of(StackOptions())

    name = "OS_CACHE__MEMCACHE_SERVERS"
    assert options.environment == {name: "127.0.0.1:11211"}
    assert options.second_node == {name: "127.0.0.1:11212"}


def test_proxysql_has_its_limit_again(tmp_path: Path) -> None:
    change, transactions = changes("D7", tmp_path, 50)
    assert isinstance(change, ProxySql)
    assert isinstance(transactions, Helper)
    assert transactions.parameters["open_ms"] == 50
    site = RecordingSite(tmp_path)
    steps: list[Callable[[Site], None]] = [change.apply, change.undo]
    for step in steps:
        step(as_site(site))

    assert [one for one in site.statements if one.startswith("UPDATE")] == [
        "UPDATE mysql_servers SET max_connections = 1",
        "UPDATE mysql_servers SET max_connections = 200",
    ]
