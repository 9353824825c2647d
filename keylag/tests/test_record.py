"""What a stack folder remembers."""

import json
import stat
from pathlib import Path

import pytest

from keylag.record import (
    Admin,
    Record,
    load_secrets,
    make_secrets,
    write_credentials,
)
from keylag.services.base import Secrets, StackOptions


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """Ports and options are read as they were written."""
    options = StackOptions(cache="memcache_pool", extras=("proxysql",))
    record = Record({"keystone": 20001}, options, ("mariadb", "keystone"))

    record.save(tmp_path)

    assert record == Record.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ports": {}}'])
def test_a_damaged_record_is_an_empty_one(tmp_path: Path, text: str) -> None:
    """A file that is not whole does not stop anybody."""
    (tmp_path / "stack.json").write_text(text)

    assert Record() == Record.load(tmp_path)


def test_passwords_differ_and_are_private(tmp_path: Path) -> None:
    """Each data folder has passwords of its own, for its owner alone."""
    make_secrets(tmp_path)
    first = load_secrets(tmp_path)
    make_secrets(tmp_path)

    assert first != load_secrets(tmp_path)
    assert first.admin != first.database
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_no_passwords_yet(tmp_path: Path) -> None:
    """A folder without data has empty passwords, not an error."""
    assert Secrets() == load_secrets(tmp_path)


def test_credentials_for_the_usual_clients(tmp_path: Path) -> None:
    """clouds.yaml and openrc say the same, for their owner alone."""
    write_credentials(tmp_path, Admin("http://127.0.0.1:1/v3", "pass"))

    clouds = json.loads((tmp_path / "clouds.yaml").read_text())
    auth = clouds["clouds"]["keylag"]["auth"]
    openrc = (tmp_path / "openrc").read_text()

    assert auth["auth_url"] == "http://127.0.0.1:1/v3"
    assert "export OS_PASSWORD='pass'" in openrc
    assert "export OS_AUTH_URL='http://127.0.0.1:1/v3'" in openrc
    for name in ("clouds.yaml", "openrc"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
