"""A Prometheus with a copy of another's data, without the metrics of one sender."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import requests
import yaml

from keylag.ports import allocate_ports
from keylag.services.base import HOST, http_ok
from keylag.stack import Stack
from keylag_dashboards.check import GENERATED

RULES: Final = GENERATED.with_name("rules") / "keylag.yml"
START_SECONDS: Final = 60
LOCK: Final = "lock"


def recorded_from(metrics: str) -> list[str]:
    """Return the names of recorded series that metrics, or such series, go into."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"] if "record" in rule]
    found: list[str] = []
    for rule in rules:
        sources = rf"\b({'|'.join([metrics, *found])})\b"
        if re.search(sources, rule["expr"]):
            found.append(rule["record"])
    return found


@contextmanager
def prometheus_without(
    stack: Stack, metrics: str, source: str, folder: Path
) -> Iterator[str]:
    """Start a copy of a stack's Prometheus that scrapes nothing; yield its URL.

    It has no metrics whose names match `metrics`, nothing that was recorded from them,
    and no state of the exporter's `source`.
    """
    data = folder / "data"
    live = stack.folder / "prometheus" / "data"
    shutil.copytree(live, data, ignore=shutil.ignore_patterns(LOCK))
    (folder / "prometheus.yml").write_text("{}")
    port = allocate_ports(["copy"], {})["copy"]
    url = f"http://{HOST}:{port}"
    process = subprocess.Popen(
        [
            stack.tools.prometheus,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={HOST}:{port}",
            "--web.enable-admin-api",
            "--log.level=error",
        ]
    )
    try:
        _wait_until_ready(process, port)
        names = "|".join([metrics, *recorded_from(metrics)])
        left_out = [f'{{__name__=~"{names}"}}', f'{{source="{source}"}}']
        answer = requests.post(
            f"{url}/api/v1/admin/tsdb/delete_series",
            params={"match[]": left_out},
            timeout=60,
        )
        assert answer.ok, answer.text
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not http_ok(port, "/-/ready"):
        assert process.poll() is None, "Prometheus ended"
        assert time.monotonic() < deadline, "Prometheus does not answer"
        time.sleep(0.2)
