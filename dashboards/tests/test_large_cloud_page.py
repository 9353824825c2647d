"""The configuration in docs/how-to/large-clouds.md, in real Prometheus servers."""

import re
import shutil
import time
from pathlib import Path

import pytest
import yaml

from keylag_cloud import live, prometheus
from keylag_cloud.model import Cloud
from keylag_dashboards import __main__ as generator

pytestmark = [pytest.mark.stack, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "large-clouds.md"
RULES = generator.FOLDER / "rules" / "keylag.yml"
CLOUD = Cloud(controllers=1, workers=1, service_workers=1)
SCRAPE_SECONDS = 5
TIMEOUT_SECONDS = 240
OF_WORKER = 'count({job="keystone", __name__!~"keylag:.+"})'
RECORDED = 'count({__name__=~"keylag:.+"})'
SCRAPED = 'count({__name__=~".+", __name__!~"keylag:.+"}) or vector(0)'


@pytest.fixture(scope="module")
def page() -> str:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ports():
    with live.collectors(CLOUD) as served:
        yield served


def block(page: str, key: str):
    """Return the YAML block of the page that begins with a key."""
    (found,) = re.findall(rf"```yaml\n({key}:.*?)```", page, re.DOTALL)
    return yaml.safe_load(found)


def stated(page: str, row: str) -> int:
    """Return the first number of a row of the page's tables."""
    (number,) = re.findall(rf"^\| \**{row}\** \| \**([\d,]+)", page, re.MULTILINE)
    return int(number.replace(",", ""))


def await_value(server, query: str, accept) -> float:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not accept(value := server.value(query)):
        assert time.monotonic() < deadline, f"{query} is {value}"
        time.sleep(1)
    return value


def scraped_series(tmp_path, config) -> float:
    """Return the series of the worker in a Prometheus that has scraped it once."""
    with prometheus.running(tmp_path / "data", tmp_path / "log", config) as server:
        return await_value(server, OF_WORKER, lambda value: value > 0)


def test_worker_has_the_stated_series(page, ports, tmp_path) -> None:
    config = live.configuration(ports, RULES, SCRAPE_SECONDS)

    assert scraped_series(tmp_path, config) == stated(page, "everything")


def test_relabelling_keeps_the_stated_series(page, ports, tmp_path) -> None:
    config = live.configuration(ports, RULES, SCRAPE_SECONDS)
    config["scrape_configs"][0].update(block(page, "metric_relabel_configs"))

    assert scraped_series(tmp_path, config) == stated(page, "the token route only")


def test_remote_write_sends_recorded_series_only(page, ports, tmp_path) -> None:
    """A second Prometheus receives them, and nothing that was scraped."""
    receiver_option = "--web.enable-remote-write-receiver"
    with prometheus.running(
        tmp_path / "far", tmp_path / "far.log", None, receiver_option
    ) as receiver:
        written = block(page, "remote_write")
        written["remote_write"][0]["url"] = (
            f"http://127.0.0.1:{receiver.port}/api/v1/write"
        )
        config = {**live.configuration(ports, RULES, SCRAPE_SECONDS), **written}
        with prometheus.running(tmp_path / "near", tmp_path / "log", config) as sender:
            recorded = await_value(sender, RECORDED, lambda value: value > 1000)
            await_value(receiver, RECORDED, lambda value: value >= recorded)
            scraped = receiver.value(SCRAPED)

    assert scraped == 0
