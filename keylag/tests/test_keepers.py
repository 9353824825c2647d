"""Tempo and Jaeger as services of a stack, and the Collector that sends them traces."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from keylag.services import jaeger, otel_collector, tempo
from keylag.services.base import Secrets, Service, Site, StackOptions
from keylag.services.otel_collector import CONFIG, KEEPERS
from keylag.tools import Tools

COLLECTOR = otel_collector.SERVICE
VARIABLE = re.compile(r"KEYLAG_\w+")
TOOLS = Tools(**dict.fromkeys(Tools.__annotations__, Path("/program")))


def site(*services: Service) -> Site:
    """Return a site with these services and the Collector."""
    names = [port for service in (COLLECTOR, *services) for port in service.ports]
    ports: Mapping[str, int] = {name: 3000 + n for n, name in enumerate(names)}
    return Site(Path("/stack"), TOOLS, StackOptions(), ports, Secrets())


def configs(of: Site) -> list[Path]:
    """Return the files that the Collector reads there."""
    words = [str(word) for word in COLLECTOR.command(of)]
    return [Path(word.removeprefix("--config=")) for word in words[1:]]


@pytest.mark.parametrize("keeper", [tempo, jaeger])
def test_a_configuration_gets_all_that_it_asks_the_environment_for(
    keeper: ModuleType,
) -> None:
    """A variable that is misspelt would be a default port, which others may have."""
    asked = VARIABLE.findall(keeper.CONFIG.read_text(encoding="utf-8"))

    assert set(asked) == set(keeper.SERVICE.environment(site(keeper.SERVICE)))


@pytest.mark.parametrize(
    "keepers", [(), (tempo.SERVICE,), (tempo.SERVICE, jaeger.SERVICE)]
)
def test_the_collector_sends_traces_to_those_that_are_there(
    keepers: tuple[Service, ...],
) -> None:
    """Beside the file, to one or both; it is told where each listens."""
    here = site(*keepers)
    files = configs(here)
    asked = {v for file in files for v in VARIABLE.findall(file.read_text())}

    names = ["config", "file", *(one.name for one in keepers)]
    assert [file.stem for file in files] == names
    assert asked == set(COLLECTOR.environment(here))


def test_each_keeper_has_a_file_for_the_collector() -> None:
    """With a pipeline of its own, so that none takes another's place."""
    for name in ("file", *KEEPERS):
        assert f"traces/{name}:" in CONFIG.with_name(f"{name}.yaml").read_text()
