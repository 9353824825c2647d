"""Tempo and Jaeger as services, and the Collector that exports traces to them."""

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


def context_with(*services: Service) -> ServiceContext:
    """Return a context with these services and the Collector."""
    names = [port for service in (COLLECTOR, *services) for port in service.ports]
    ports: Mapping[str, int] = {name: 3000 + n for n, name in enumerate(names)}
    return ServiceContext(Path("/stack"), TOOLS, StackOptions(), ports, Secrets())


def configs(context: ServiceContext) -> list[Path]:
    """Return the Collector's configuration files."""
    words = [str(word) for word in COLLECTOR.command(context)]
    return [Path(word.removeprefix("--config=")) for word in words[1:]]


@pytest.mark.parametrize("store", [tempo, jaeger])
def test_environment_has_all_variables_of_the_configuration(
    store: ModuleType,
) -> None:
    """A misspelt variable selects a default port, which may be in use."""
    used = VARIABLE.findall(store.CONFIG.read_text(encoding="utf-8"))

    assert set(used) == set(store.SERVICE.environment(context_with(store.SERVICE)))


@pytest.mark.parametrize(
    "stores", [(), (tempo.SERVICE,), (tempo.SERVICE, jaeger.SERVICE)]
)
def test_collector_exports_to_present_trace_stores(
    stores: tuple[Service, ...],
) -> None:
    context = context_with(*stores)
    files = configs(context)
    used = {v for file in files for v in VARIABLE.findall(file.read_text())}

    names = ["config", "file", *(one.name for one in stores)]
    assert [file.stem for file in files] == names
    assert used == set(COLLECTOR.environment(context))


def test_each_trace_store_has_its_own_pipeline() -> None:
    """Configurations that share a pipeline override each other."""
    for name in ("file", *TRACE_STORES):
        assert f"traces/{name}:" in CONFIG.with_name(f"{name}.yaml").read_text()
