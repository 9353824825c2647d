"""Serve requests in greenlets of one thread; print breakdowns and clients' waits.

``python green_server.py eventlet|gevent COUNT``; each request waits a while in `sql`
and in `cache`, and meanwhile all others are served.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

LOCAL = "127.0.0.1"
SQL_SECONDS, CACHE_SECONDS, CHILD_SECONDS = 0.1, 0.05, 0.07
_ENTRY = re.compile(r"([a-z_.]+);dur=([0-9.]+)")


def gevent_server(application: Any) -> int:
    from gevent.pywsgi import WSGIServer

    server = WSGIServer((LOCAL, 0), application, log=None)
    server.start()
    return int(server.server_port)


def eventlet_server(application: Any) -> int:
    import eventlet
    from eventlet import wsgi

    listener = eventlet.listen((LOCAL, 0))
    eventlet.spawn(wsgi.server, listener, application, log_output=False)
    return int(listener.getsockname()[1])


SERVERS = {"eventlet": eventlet_server, "gevent": gevent_server}
PATCH = {"eventlet": "eventlet:monkey_patch", "gevent": "gevent.monkey:patch_all"}


def serve(name: str, count: int) -> list[dict[str, float]]:
    """Return milliseconds by entry, and `waited`, of so many requests at once."""
    module, _, function = PATCH[name].partition(":")
    getattr(importlib.import_module(module), function)()

    import time

    spawn = importlib.import_module(name).spawn

    from keylag_otel.request import TimedApplication
    from keylag_otel.wrappers import timed

    sql = timed("sql", "validate")(time.sleep)
    cache = timed("cache", "roles")(time.sleep)
    in_child = timed("password_hash", "authenticate")(time.sleep)

    def application(environ: Any, start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/child":
            spawn(in_child, CHILD_SECONDS)
        sql(SQL_SECONDS)
        cache(CACHE_SECONDS)
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]

    port = SERVERS[name](TimedApplication(application))
    paths = ["/", "/child"] * (count // 2)

    def ask(path: str) -> dict[str, float]:
        asked = time.perf_counter()
        with urllib.request.urlopen(f"http://{LOCAL}:{port}{path}") as answer:
            timing = answer.headers["Server-Timing"]
        waited = (time.perf_counter() - asked) * 1000
        entries = {entry: float(spent) for entry, spent in _ENTRY.findall(timing)}
        return {**entries, "waited": waited}

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, paths))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(serve(sys.argv[1], int(sys.argv[2]))))
