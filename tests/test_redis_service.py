"""Redis as a service of a stack."""

from pathlib import Path

import pytest

from keylag.datadir_cache import DatadirCache
from keylag.services import redis
from keylag.services.base import first_bytes
from keylag.stack import Stack
from keylag.tools import Tools


@pytest.mark.stack
def test_redis_starts_and_stops(tmp_path: Path) -> None:
    store = DatadirCache(tmp_path / "prepared")
    services = (redis.SERVICE,)
    with Stack(
        tmp_path / "s", Tools.load(), services=services, datadir_cache=store
    ) as stack:
        port = stack.port("redis")
        answer = first_bytes(port, b"PING\r\n")
        stopped = stack.down()

    assert answer.startswith(b"+PONG")
    assert stopped == ["redis"]
    assert first_bytes(port, b"PING\r\n") == b""
