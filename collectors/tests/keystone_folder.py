"""A Keystone's configuration, database and keys, on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KEYSTONE_MANAGE = Path(sys.executable).with_name("keystone-manage")

PASSWORD_AUTH = {
    "auth": {
        "identity": {
            "methods": ["password"],
            "password": {
                "user": {
                    "name": "admin",
                    "password": "secret",
                    "domain": {"id": "default"},
                }
            },
        },
        "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
    }
}


def configure(folder: Path) -> Path:
    """Make everything a Keystone needs in a folder; return its configuration."""
    configuration = folder / "keystone.conf"
    configuration.write_text(
        f"[DEFAULT]\nlog_file = {folder}/keystone.log\n"
        f"[database]\nconnection = sqlite:///{folder}/keystone.db\n"
        f"[fernet_tokens]\nkey_repository = {folder}/fernet\n"
        f"[credential]\nkey_repository = {folder}/credential\n"
        "[identity]\npassword_hash_rounds = 4\n"
        "[cache]\nbackend = dogpile.cache.memory\n"
    )
    who = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
    for arguments in (
        ["db_sync"],
        ["fernet_setup", *who],
        ["bootstrap", "--bootstrap-password", "secret"],
    ):
        subprocess.run(
            [KEYSTONE_MANAGE, "--config-file", configuration, *arguments],
            check=True,
            capture_output=True,
        )
    return configuration
