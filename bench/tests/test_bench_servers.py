"""Counters of the caches, and the OTLP sink."""

import http.client
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from keylag.services.base import HOST
from keylag_bench.otlp_sink import open_otlp_sink
from keylag_bench.servers import count_cache_calls, send_command

MEMCACHED = """\
STAT pid 5\r
STAT cmd_get 14\r
STAT cmd_set 2\r
STAT cmd_flush 9\r
STAT cmd_touch 0\r
STAT get_hits 13\r
STAT delete_misses 1\r
STAT delete_hits 3\r
END\r
"""
REDIS = """\
# Commandstats\r
cmdstat_get:calls=90,usec=99,usec_per_call=1.10\r
cmdstat_setex:calls=4,usec=9,usec_per_call=1.10\r
cmdstat_lpush:calls=500,usec=9,usec_per_call=1.10\r
cmdstat_info:calls=7,usec=9,usec_per_call=1.10\r
+PONG\r
"""


def test_cache_calls_are_counted_without_other_commands() -> None:
    assert count_cache_calls(MEMCACHED) == 20
    assert count_cache_calls(REDIS) == 94
    assert count_cache_calls(MEMCACHED + REDIS) == 114


class FakeServer(BaseRequestHandler):
    """Responds in two parts, or closes the connection after the first."""

    def handle(self) -> None:
        question = self.request.recv(64)
        self.request.sendall(b"one\r\n")
        if question == b"all\r\n":
            self.request.sendall(b"END\r\n")


def test_response_is_read_to_its_end_or_raises() -> None:
    with TCPServer((HOST, 0), FakeServer) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = server.server_address[1]
        try:
            assert send_command(port, b"all\r\n", b"END\r\n") == "one\r\nEND\r\n"
            with pytest.raises(ConnectionError):
                send_command(port, b"half\r\n", b"END\r\n")
        finally:
            server.shutdown()


def test_sink_accepts_exports_and_counts_them_by_path() -> None:
    with open_otlp_sink() as sink:
        connection = http.client.HTTPConnection(HOST, sink.port, timeout=5)
        for path in ("/v1/traces", "/v1/traces", "/v1/metrics"):
            connection.request("POST", path, body=b"x" * 1000)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
        connection.close()

    assert sink.requests_by_path == {"/v1/traces": 2, "/v1/metrics": 1}
