"""Redis by itself is started and stopped like the others."""

from pathlib import Path

import pytest

from keylag.prepared import Store
from keylag.services import redis
from keylag.services.base import talks
from keylag.stack import Stack
from keylag.tools import Tools


@pytest.mark.stack
def test_redis_starts_and_stops(tmp_path: Path) -> None:
    """It answers while the stack is up, and is found and ended afterwards."""
    store = Store(tmp_path / "prepared")
    services = (redis.SERVICE,)
    with Stack(tmp_path / "s", Tools.load(), services=services, store=store) as stack:
        port = stack.port("redis")
        answer = talks(port, b"PING\r\n")
        stopped = stack.down()

    assert answer.startswith(b"+PONG")
    assert stopped == ["redis"]
    assert talks(port, b"PING\r\n") == b""
