"""Tempo and Jaeger as services of a stack, and the Collector that sends them traces."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from keylag.services import jaeger, otel_collector, tempo
from keylag.services.base import Secrets, Service, ServiceContext, StackOptions
from keylag.services.otel_collector import CONFIG, TRACE_STORES
from keylag.tools import Tools

COLLECTOR = otel_collector.SERVICE
VARIABLE = re.compile(r"KEYLAG_\w+")
TOOLS = Tools(**dict.fromkeys(Tools.__annotations__, Path("/program")))


def site(*services: Service) -> ServiceContext:
    """Return a site with these services and the Collector."""
    names = [port for service in (COLLECTOR, *services) for port in service.ports]
    ports: Mapping[str, int] = {name: 3000 + n for n, name in enumerate(names)}
    return ServiceContext(Path("/stack"), TOOLS, StackOptions(), ports, Secrets())


def configs(of: ServiceContext) -> list[Path]:
    """Return the files that the Collector reads there."""
    words = [str(word) for word in COLLECTOR.command(of)]
    return [Path(word.removeprefix("--config=")) for word in words[1:]]


@pytest.mark.parametrize("keeper", [tempo, jaeger])
def test_environment_has_all_variables_of_the_configuration(
    keeper: ModuleType,
) -> None:
    """A misspelt variable selects a default port, which may be in use."""
    asked = VARIABLE.findall(keeper.CONFIG.read_text(encoding="utf-8"))

    assert set(asked) == set(keeper.SERVICE.environment(site(keeper.SERVICE)))


@pytest.mark.parametrize(
    "keepers", [(), (tempo.SERVICE,), (tempo.SERVICE, jaeger.SERVICE)]
)
def test_collector_exports_to_present_trace_stores(
    keepers: tuple[Service, ...],
) -> None:
    here = site(*keepers)
    files = configs(here)
    asked = {v for file in files for v in VARIABLE.findall(file.read_text())}

    names = ["config", "file", *(one.name for one in keepers)]
    assert [file.stem for file in files] == names
    assert asked == set(COLLECTOR.environment(here))


def test_each_trace_store_has_its_own_pipeline() -> None:
    """Configurations that share a pipeline override each other."""
    for name in ("file", *TRACE_STORES):
        assert f"traces/{name}:" in CONFIG.with_name(f"{name}.yaml").read_text()
