"""Keystones as an operator installs them: by pip, with own files, under uWSGI."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests
from keystone_environment import Environment

from keylag.paths import CHECKOUT

PASSWORD: Final = "secret"  # noqa: S105 - of a Keystone that lives as long as a test
CONSTRAINTS: Final = CHECKOUT / "locks" / "keystone.txt"
"""In place of the upper constraints of the release."""
BARE: Final = "keystone.wsgi.api:application"
INSTRUMENTED: Final = "keylag_otel.wsgi:application"
ANSWER_SECONDS: Final = 60

KEYSTONE_CONF: Final = """\
[database]
connection = sqlite:///{site}/keystone.db
[fernet_tokens]
key_repository = {site}/fernet-keys
[fernet_receipts]
key_repository = {site}/fernet-keys
[credential]
key_repository = {site}/credential-keys
[identity]
password_hash_rounds = 4
[cache]
backend = dogpile.cache.memory
"""
UWSGI_INI: Final = """\
[uwsgi]
module = {module}
http-socket = 127.0.0.1:{port}
virtualenv = {environment}
processes = 1
master = true
enable-threads = true
die-on-term = true
single-interpreter = true
disable-logging = true
buffer-size = 65535
add-header = Connection: close
daemonize = {folder}/uwsgi.log
pidfile = {folder}/uwsgi.pid
"""
RESTART: Final = """\
#!/bin/sh
# Restarts this Keystone, as `systemctl restart` would.
set -eu
cd "$(dirname "$0")"
if [ -e uwsgi.pid ]; then
  pid=$(cat uwsgi.pid)
  kill "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
export OS_KEYSTONE_CONFIG_FILES="$PWD/keystone.conf"
export OTEL_METRICS_EXPORTER=none KEYLAG_SERVER_TIMING=true
exec {environment}/bin/uwsgi --ini uwsgi.ini
"""


@dataclass(frozen=True)
class OperatorsKeystone:
    """A Keystone in a folder of its own; several may share a `site`: data and keys."""

    environment: Environment
    folder: Path
    site: Path
    module: str
    port: int

    @property
    def url(self) -> str:
        """The URL with its version."""
        return f"http://127.0.0.1:{self.port}/v3"

    @property
    def restart_command(self) -> str:
        """What a plan has as `restart`."""
        return f"sh {self.folder}/restart.sh"

    def configure(self) -> None:
        """Write keystone.conf, uwsgi.ini and the script that restarts it."""
        self.folder.mkdir(parents=True)
        environment = self.environment.python.parents[1]
        for name, text in {
            "keystone.conf": KEYSTONE_CONF.format(site=self.site),
            "uwsgi.ini": UWSGI_INI.format(
                module=self.module,
                port=self.port,
                environment=environment,
                folder=self.folder,
            ),
            "restart.sh": RESTART.replace("{environment}", str(environment)),
        }.items():
            (self.folder / name).write_text(text)

    def bootstrap(self) -> None:
        """Make the tables, the keys and the administrator."""
        for name in ("fernet-keys", "credential-keys"):
            (self.site / name).mkdir(mode=0o700, parents=True)
        who = [f"--keystone-user={os.getuid()}", f"--keystone-group={os.getgid()}"]
        self._manage("db_sync")
        self._manage("fernet_setup", *who)
        self._manage("credential_setup", *who)
        self._manage(
            "bootstrap",
            f"--bootstrap-password={PASSWORD}",
            "--bootstrap-region-id=RegionOne",
            f"--bootstrap-public-url={self.url}",
        )

    def _manage(self, *words: str) -> None:
        program = self.environment.python.with_name("keystone-manage")
        configuration = f"--config-file={self.folder / 'keystone.conf'}"
        subprocess.run([program, configuration, *words], check=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        subprocess.run(["sh", self.folder / "restart.sh"], check=True)
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._answers():
            log = self.folder / "uwsgi.log"
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        """Stop it, if it runs."""
        pid = self.folder / "uwsgi.pid"
        if pid.exists():
            subprocess.run(["sh", "-c", f"kill $(cat {pid})"], check=False)
