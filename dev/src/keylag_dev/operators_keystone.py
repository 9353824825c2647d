"""Keystones as an operator installs them: by pip, with own files, under uWSGI."""

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from keylag.experiment.remote_access import wait_until_it_answers
from keylag.launcher import StackError
from keylag.paths import CHECKOUT
from keylag_dev.keystone_environment import Environment, copy_collectors

CONSTRAINTS: Final = CHECKOUT / "locks" / "keystone.txt"
"""In place of the upper constraints of the release."""
BARE: Final = "keystone.wsgi.api:application"
INSTRUMENTED: Final = "keylag_otel.wsgi:application"
CLIENT_LIBRARIES: Final = ("pymysql", "python-memcached")
"""Keystone's, for the database and the cache server."""
LOG_CHARACTERS: Final = 3000

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
    """A Keystone in a folder of its own; several may share data and keys."""

    environment: Environment
    folder: Path
    configuration: str
    """The text of keystone.conf."""
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
            "keystone.conf": self.configuration,
            "uwsgi.ini": UWSGI_INI.format(
                module=self.module,
                port=self.port,
                environment=environment,
                folder=self.folder,
            ),
            "restart.sh": RESTART.replace("{environment}", str(environment)),
        }.items():
            (self.folder / name).write_text(text)

    def bootstrap(self, site: Path, password: str) -> None:
        """Make the tables, the keys in a folder, and the administrator."""
        for name in ("fernet-keys", "credential-keys"):
            (site / name).mkdir(mode=0o700, parents=True)
        who = [f"--keystone-user={os.getuid()}", f"--keystone-group={os.getgid()}"]
        self._manage("db_sync")
        self._manage("fernet_setup", *who)
        self._manage("credential_setup", *who)
        self._manage(
            "bootstrap",
            f"--bootstrap-password={password}",
            "--bootstrap-region-id=RegionOne",
            f"--bootstrap-public-url={self.url}",
        )

    def _manage(self, *words: str) -> None:
        program = self.environment.python.with_name("keystone-manage")
        configuration = f"--config-file={self.folder / 'keystone.conf'}"
        subprocess.run([program, configuration, *words], check=True)

    def start(self) -> None:
        """Start it and wait until it answers; raises StackError if it does not."""
        subprocess.run(["sh", self.folder / "restart.sh"], check=True)
        try:
            wait_until_it_answers(self.url)
        except StackError as error:
            log = (self.folder / "uwsgi.log").read_text()[-LOG_CHARACTERS:]
            message = f"{error}. Its log ends:\n{log}"
            raise StackError(message) from error

    def stop(self) -> None:
        """Stop it, if it runs."""
        stop_installed(self.environment.python.parents[1])


def stop_installed(folder: Path) -> None:
    """Stop the Keystones that are installed below a folder, also those of killed runs.

    The folder has no symbolic links in its path.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if words and Path(words[0]).is_relative_to(folder):
                process.terminate()


def install(folder: Path, module: str) -> Environment:
    """Install Keystone and uWSGI by pip; keylag-otel too, if it has the module."""
    environment = Environment(folder / "venv")
    environment.pip(
        "install", "-c", CONSTRAINTS, "keystone", *CLIENT_LIBRARIES, "pyuwsgi"
    )
    if module == INSTRUMENTED:
        package = copy_collectors(folder)
        environment.pip("install", "-c", CONSTRAINTS, f"{package}[otlp]")
    return environment
