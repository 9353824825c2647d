"""Keystones to test with, each in a process where it has just been loaded.

Keystone can be configured once in a process, so each configuration gets a
process of its own: forked from a server that has imported Keystone, and
working on a copy of one prepared folder.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "secret"  # noqa: S105 - of a Keystone that lives as long as a test
_PATIENCE_SECONDS = 120

#: Section to options.
Options = dict[str, dict[str, Any]]


def options_in(folder: Path) -> Options:
    """Return the options of a Keystone whose every file is in `folder`."""
    return {
        "DEFAULT": {"log_file": folder / "keystone.log"},
        "database": {"connection": f"sqlite:///{folder}/keystone.db"},
        "fernet_tokens": {"key_repository": folder / "fernet"},
        "credential": {"key_repository": folder / "credential"},
        "identity": {"password_hash_rounds": 4},
        "cache": {"backend": "dogpile.cache.memory"},
    }


def write_configuration(folder: Path, options: Options | None = None) -> Path:
    """Write keystone.conf with `options` over those of the folder."""
    merged = options_in(folder)
    for section, changed in (options or {}).items():
        merged[section] = {**merged.get(section, {}), **changed}
    configuration = folder / "keystone.conf"
    configuration.write_text(
        "".join(
            f"[{section}]\n" + "".join(f"{key} = {put[key]}\n" for key in put)
            for section, put in merged.items()
        )
    )
    return configuration


class Processes:
    """Processes in which Keystone is imported but not yet configured."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["keystone_preload"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(Path(__file__).parent))
            forkserver.ensure_running()

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what `function` returns in a process of its own."""
        with ProcessPoolExecutor(1, mp_context=self._context) as pool:
            return pool.submit(function, *args).result(_PATIENCE_SECONDS)


def manage(configuration: Path, *arguments: str) -> None:
    """Do what keystone-manage does, in this process, which is not for more."""
    from keystone.cmd import manage as keystone_manage

    sys.argv = ["keystone-manage", "--config-file", str(configuration), *arguments]
    keystone_manage.main()


def prepare(processes: Processes, folder: Path) -> None:
    """Make the database, keys and administrator that the sites start from."""
    configuration = write_configuration(folder)
    who = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
    for arguments in (
        ["db_sync"],
        ["fernet_setup", *who],
        ["credential_setup", *who],
        ["bootstrap", "--bootstrap-password", PASSWORD, *BOOTSTRAP_ENDPOINT],
    ):
        processes.run(manage, configuration, *arguments)


BOOTSTRAP_ENDPOINT = (
    *("--bootstrap-region-id", "RegionOne"),
    *("--bootstrap-public-url", "http://127.0.0.1:5000/v3"),
)


def in_keystone(
    configuration: Path,
    environment: dict[str, str],
    drive: Callable[..., Any],
    *args: Any,
) -> Any:
    """Load Keystone in this process as a WSGI server does, and drive it."""
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = str(configuration)
    os.environ["OTEL_METRICS_EXPORTER"] = "none"
    os.environ.update(environment)
    from keystone_client import Keystone

    from keylag_otel.wsgi import application

    return drive(Keystone(application), *args)


class Site:
    """A prepared folder, from which each run gets a Keystone of its own."""

    def __init__(self, processes: Processes, prepared: Path, folder: Path) -> None:
        self._processes = processes
        self._prepared = prepared
        self._folder = folder
        self._runs = 0

    def run(
        self,
        drive: Callable[..., Any],
        *args: Any,
        options: Options | None = None,
        environment: dict[str, str] | None = None,
    ) -> Any:
        """Return what `drive(keystone, *args)` returns, with these options."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        shutil.copytree(self._prepared, folder)
        configuration = write_configuration(folder, options)
        return self._processes.run(
            in_keystone, configuration, environment or {}, drive, *args
        )
