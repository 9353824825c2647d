"""What tests of the whole share: one real stack, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from keylag.demo import CLOUD
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Real servers with a small cloud and the cache in memcached."""
    folder: Path = tmp_path_factory.mktemp("stack")
    options = StackOptions(cache="memcache_pool")
    with Stack(folder, Tools.load(), options, prepared=CLOUD) as started:
        yield started
