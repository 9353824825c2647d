"""Run one Keystone in one process and thread, and call it on command.

    worker.py INSTRUMENTATION

Reads one JSON object per line and replies to each with one, until end of input:

    {"call": "GET", "requests": 80, "flush": true}
    {"cpu_seconds": 0.312, "wall_seconds": 0.334, "spans": 80,
     "exports": 1, "export_cpu_seconds": 0.009}

    {"tidy": true}
    {}
"""

import gc
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, TextIO

from exports import PeriodicExports
from instrumentation import MAKERS, Application, Instrumentation
from service import service

PATH = "/v3/auth/tokens"
PASSWORD = "KEYLAG_BENCH_PASSWORD"  # noqa: S105 - the name of a variable
ANSWERS = {"GET": "200", "POST": "201"}
STACK_WORDS = 70_000
"""More than half a MiB, so that Python allocates a chunk of 1 MiB."""


class AnswerError(Exception):
    """Keystone responded with an unexpected status."""


class Client:
    """Calls WSGI applications as a server does."""

    def __init__(self, instrumented: Instrumentation) -> None:
        self._instrumented = instrumented
        self._login = _login(os.environ[PASSWORD])
        _, headers, _ = self.call("POST", {}, self._login)
        self._token = headers["X-Subject-Token"]

    def issue(self) -> None:
        """Issue a token for a password."""
        self._expect("POST", {}, self._login)

    def validate(self) -> None:
        """Validate a token with itself."""
        self._validated()

    def call_service(self) -> None:
        """Send a request to a service, with a token that it has cached."""
        self._expect("GET", {"HTTP_X_AUTH_TOKEN": self._token}, b"", self._service)

    @cached_property
    def _service(self) -> Application:
        self._instrumented.instrument_service()
        return service(self._token, self._validated())

    def _validated(self) -> bytes:
        token = self._token
        headers = {"HTTP_X_AUTH_TOKEN": token, "HTTP_X_SUBJECT_TOKEN": token}
        return self._expect("GET", headers, b"")

    def _expect(
        self,
        method: str,
        headers: dict[str, str],
        body: bytes,
        application: Application | None = None,
    ) -> bytes:
        status, _, answer = self.call(method, headers, body, application)
        if not status.startswith(ANSWERS[method]):
            message = f"unexpected status {status} of {method}: {answer[:200]!r}"
            raise AnswerError(message)
        return answer

    def call(
        self,
        method: str,
        headers: dict[str, str],
        body: bytes,
        application: Application | None = None,
    ) -> tuple[str, dict[str, str], bytes]:
        """Return status line, headers and body of a response."""
        started: list[Any] = []

        def start_response(status: str, fields: list[Any], *_: Any) -> None:
            started[:] = (status, dict(fields))

        own = self._instrumented.headers
        environ = {**_environ(method, body), **own, **headers}
        parts = (application or self._instrumented.application)(environ, start_response)
        try:
            content = b"".join(parts)
        finally:
            getattr(parts, "close", lambda: None)()
        return started[0], started[1], content


def _login(password: str) -> bytes:
    domain = {"id": "default"}
    user = {"name": "admin", "password": password, "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    scope = {"project": {"name": "admin", "domain": domain}}
    return json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()


def _environ(method: str, body: bytes) -> dict[str, Any]:
    """Return a WSGI environment as PEP 3333 requires it."""
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": PATH,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "5000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


class Meter:
    """Measures CPU time of all threads since the end of the previous round.

    So the work of an exporter during the rounds of other arms counts too.
    """

    def __init__(self, instrumented: Instrumentation) -> None:
        self._instrumented = instrumented
        self._exports = PeriodicExports()
        self._cpu = time.process_time()

    def tidy(self) -> dict[str, float]:
        """Collect all garbage; its CPU time does not count."""
        before = time.process_time()
        gc.collect()
        self._cpu += time.process_time() - before
        return {}

    def time(
        self, call: Callable[[], None], requests: int, *, flush: bool
    ) -> dict[str, float]:
        """Make the calls; return their seconds, and the spans since the start.

        A due export runs beside them; its end is waited for.
        """
        export = self._exports.begin()
        started = time.perf_counter()
        _repeat(call, requests)
        wall = time.perf_counter() - started
        if export:
            export.join()
        self._exports.add_work(wall)
        if flush:
            self._instrumented.flush()
        before, self._cpu = self._cpu, time.process_time()
        return {
            "cpu_seconds": self._cpu - before,
            "wall_seconds": wall,
            "spans": self._instrumented.spans(),
            **self._exports.take_counts(),
        }


def _repeat_plainly(call: Callable[[], None], times: int) -> None:
    for _ in range(times):
        call()


_repeat = FunctionType(
    _repeat_plainly.__code__.replace(co_stacksize=STACK_WORDS), globals(), "_repeat"
)
"""Repeats a call, with a large chunk of Python's stack for its frames.

CPython allocates that stack in chunks of 16 KiB.  From 3.11 until the fix of gh-142183,
each call that crosses the end of a chunk allocates the next one and frees it again.
How often that happens depends on the number of frames, and would distort the results.
"""


def serve(instrumented: Instrumentation, replies: TextIO) -> None:
    """Execute the commands of the input until its end."""
    client = Client(instrumented)
    calls = {
        "GET": client.validate,
        "POST": client.issue,
        "SERVICE": client.call_service,
    }
    meter = Meter(instrumented)
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = (
            meter.tidy()
            if "tidy" in command
            else meter.time(
                calls[command["call"]], command["requests"], flush=command["flush"]
            )
        )
        print(json.dumps(answer), file=replies, flush=True)


def main() -> None:
    """Reserve standard output for replies; redirect all other output to stderr."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        serve(MAKERS[sys.argv[1]](), replies)


if __name__ == "__main__":
    main()
