"""Record, passwords and credential files of a stack folder."""

import json
import stat
from pathlib import Path

import pytest

from keylag.services.base import Secrets, StackOptions
from keylag.stack_record import (
    AdminCredentials,
    StackRecord,
    generate_secrets,
    load_secrets,
    write_credentials,
)


def test_record_survives_save_and_load(tmp_path: Path) -> None:
    options = StackOptions(cache="memcache_pool", extras=("proxysql",))
    record = StackRecord({"keystone": 20001}, options, ("mariadb", "keystone"))

    record.save(tmp_path)

    assert record == StackRecord.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ports": {}}'])
def test_damaged_record_is_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)

    assert StackRecord() == StackRecord.load(tmp_path)


def test_passwords_are_unique_and_private(tmp_path: Path) -> None:
    generate_secrets(tmp_path)
    first = load_secrets(tmp_path)
    generate_secrets(tmp_path)

    assert first != load_secrets(tmp_path)
    assert first.admin != first.database
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_missing_passwords_are_empty(tmp_path: Path) -> None:
    assert Secrets() == load_secrets(tmp_path)


def test_credential_files_agree_and_are_private(tmp_path: Path) -> None:
    write_credentials(tmp_path, AdminCredentials("http://127.0.0.1:1/v3", "pass"))

    clouds = json.loads((tmp_path / "clouds.yaml").read_text())
    auth = clouds["clouds"]["keylag"]["auth"]
    openrc = (tmp_path / "openrc").read_text()

    assert auth["auth_url"] == "http://127.0.0.1:1/v3"
    assert "export OS_PASSWORD='pass'" in openrc
    assert "export OS_AUTH_URL='http://127.0.0.1:1/v3'" in openrc
    for name in ("clouds.yaml", "openrc"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
