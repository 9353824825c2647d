"""Password hashes of another cost; the ones before wait in a table of their own."""

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keylag.faults.model import FaultError
from keylag.faults.probe import read_users
from keylag.sample_cloud import users_file
from keylag.services import protected_service
from keylag.stack_info import StackInfo
from keylag.stack_record import load_secrets

if TYPE_CHECKING:
    from keylag.faults.site import Site

SAVED = "keylag_saved_hashes"
HASHES = """\
import bcrypt, json, os, sys
from concurrent.futures import ThreadPoolExecutor
rounds, passwords = json.load(sys.stdin)
def hashed(password):
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds)).decode()
with ThreadPoolExecutor(os.cpu_count()) as pool:
    json.dump(list(pool.map(hashed, passwords)), sys.stdout)
"""
"""Runs with Keystone's interpreter, which has bcrypt."""
CREATE = f"""\
CREATE TABLE {SAVED}
(id INT PRIMARY KEY, old_hash VARCHAR(255), new_hash VARCHAR(255))"""
ACCOUNTS = """\
SELECT local_user.name, COALESCE(project.name, 'Default'), password.id,
  password.password_hash
FROM password JOIN local_user ON local_user.id = password.local_user_id
LEFT JOIN project ON project.id = local_user.domain_id"""


@dataclass(frozen=True)
class RehashedPasswords:
    """The passwords of all users that the stack knows, with another bcrypt cost."""

    rounds: int

    def apply(self, site: "Site") -> None:
        """Hash the passwords, save the hashes before, and replace them."""
        passwords = _passwords(site)
        known = [
            (row_id, before, passwords[name, domain])
            for name, domain, row_id, before in site.query(ACCOUNTS)
            if (name, domain) in passwords
        ]
        hashes = self._hash(site, [password for _, _, password in known])
        site.execute([f"DROP TABLE IF EXISTS {SAVED}", CREATE])
        rows = [
            (row_id, before, after)
            for (row_id, before, _), after in zip(known, hashes, strict=True)
        ]
        site.execute_many(f"INSERT INTO {SAVED} VALUES (%s, %s, %s)", rows)
        site.execute([_exchange("old_hash", "new_hash")])

    def undo(self, site: "Site") -> None:
        """Put the hashes back that no one has replaced meanwhile."""
        if site.query(f"SHOW TABLES LIKE '{SAVED}'"):
            site.execute([_exchange("new_hash", "old_hash"), f"DROP TABLE {SAVED}"])

    def _hash(self, site: "Site", passwords: list[str]) -> list[str]:
        python = site.stack.tools.keystone / "bin" / "python"
        ended = subprocess.run(
            [python, "-c", HASHES],
            input=json.dumps([self.rounds, passwords]),
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            message = f"The passwords could not be hashed:\n{ended.stderr}"
            raise FaultError(message)
        hashes: list[str] = json.loads(ended.stdout)
        return hashes


def _exchange(before: str, after: str) -> str:
    return (
        f"UPDATE password JOIN {SAVED} saved USING (id) "
        f"SET password.password_hash = saved.{after} "
        f"WHERE password.password_hash = saved.{before}"
    )


def _passwords(site: "Site") -> dict[tuple[str, str], str]:
    stack, secrets = StackInfo(site.folder), load_secrets(site.folder / "data")
    users = read_users(stack) if users_file(stack).exists() else []
    return {
        ("admin", "Default"): secrets.admin,
        (protected_service.NAME, "Default"): secrets.service,
        **{(row["username"], row["user_domain"]): row["password"] for row in users},
    }
