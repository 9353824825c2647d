"""What tests of the whole share: one real stack, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from traffic import Sent, call_service, send_all, wake_service

from keylag.demo import SAMPLE_CLOUD
from keylag.jtl import Sample
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

RUN = "tests"
"""What Keystone's metrics say that they are for, as in a run of an experiment."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Real servers with a small cloud, the cache in memcached, and a service."""
    folder: Path = tmp_path_factory.mktemp("stack")
    environment = {"OTEL_RESOURCE_ATTRIBUTES": f"keylag.run={RUN}"}
    options = StackOptions(
        cache="memcache_pool", environment=environment, extras=("service",)
    )
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        yield started


@pytest.fixture(scope="session")
def sent(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """Token calls of all kinds, and what everybody saw of them.

    The service is called before: what grows from nothing has no rate yet.
    """
    wake_service(stack)
    return send_all(stack, tmp_path_factory.mktemp("load"))


@pytest.fixture(scope="session")
def called(
    stack: Stack, sent: Sent, tmp_path_factory: pytest.TempPathFactory
) -> list[Sample]:
    """Calls of the service, after all that is counted by itself."""
    return call_service(stack, tmp_path_factory.mktemp("service"))
