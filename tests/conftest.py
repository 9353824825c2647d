"""Fixtures of the system tests: one real stack, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from traffic import SentCalls, call_service, send_all, wake_service

from keylag.demo import SAMPLE_CLOUD
from keylag.jtl import Sample
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

RUN = "tests"
"""Value of the label with the run, as in an experiment."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with the sample cloud, memcache_pool and the extra service."""
    folder: Path = tmp_path_factory.mktemp("stack")
    attributes = f"keylag.run={RUN},cluster=tests,region=RegionOne"
    environment = {"OTEL_RESOURCE_ATTRIBUTES": attributes}
    options = StackOptions(
        cache="memcache_pool", environment=environment, extras=("service",)
    )
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        yield started


@pytest.fixture(scope="session")
def sent(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> SentCalls:
    """Token calls of all kinds, as JMeter, Prometheus and the database counted them.

    The service is called before, because Prometheus computes no rate of a new series.
    """
    wake_service(stack)
    return send_all(stack, tmp_path_factory.mktemp("load"))


@pytest.fixture(scope="session")
def called(
    stack: Stack, sent: SentCalls, tmp_path_factory: pytest.TempPathFactory
) -> list[Sample]:
    """Calls of the service, after `sent`, whose counts they must not affect."""
    return call_service(stack, tmp_path_factory.mktemp("service"))
