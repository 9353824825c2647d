"""One Keystone in one process and one thread, which calls itself as it is told.

    worker.py INSTRUMENTATION

Reads a JSON object a line and answers each with one, until its input ends:

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
from instrumentation import MAKERS, Application, Instrumented
from service import service

PATH = "/v3/auth/tokens"
PASSWORD = "KEYLAG_BENCH_PASSWORD"  # noqa: S105 - the name of a variable
ANSWERS = {"GET": "200", "POST": "201"}
STACK_WORDS = 70_000
"""More than half a MiB, so that Python makes room for a whole one."""


class AnswerError(Exception):
    """Keystone did not answer as it should."""


class Client:
    """Calls WSGI applications as a server would."""

    def __init__(self, instrumented: Instrumented) -> None:
        self._instrumented = instrumented
        self._login = _login(os.environ[PASSWORD])
        _, headers, _ = self.call("POST", {}, self._login)
        self._token = headers["X-Subject-Token"]

    def issue(self) -> None:
        """Ask for a token with a password."""
        self._expect("POST", {}, self._login)

    def validate(self) -> None:
        """Validate a token with itself."""
        self._validated()

    def ask_service(self) -> None:
        """Ask a service for something, with a token that its cache knows."""
        self._expect("GET", {"HTTP_X_AUTH_TOKEN": self._token}, b"", self._service)

    @cached_property
    def _service(self) -> Application:
        self._instrumented.watch_service()
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
            message = f"{method} was answered with {status}: {answer[:200]!r}"
            raise AnswerError(message)
        return answer

    def call(
        self,
        method: str,
        headers: dict[str, str],
        body: bytes,
        application: Application | None = None,
    ) -> tuple[str, dict[str, str], bytes]:
        """Return status line, headers and content of an answer, else of Keystone's."""
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
    """Return a password login of the bootstrap administrator, scoped to a project."""
    domain = {"id": "default"}
    user = {"name": "admin", "password": password, "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    scope = {"project": {"name": "admin", "domain": domain}}
    return json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()


def _environ(method: str, body: bytes) -> dict[str, Any]:
    """Return a request as PEP 3333 wants it."""
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
    """Times calls; the CPU of all threads, from the end of the block before.

    So what an exporter does while other arms run is charged too.
    """

    def __init__(self, instrumented: Instrumented) -> None:
        self._instrumented = instrumented
        self._exports = PeriodicExports()
        self._cpu = time.process_time()

    def tidy(self) -> dict[str, float]:
        """Collect all garbage; nobody is charged for that, and for nothing else."""
        before = time.process_time()
        gc.collect()
        self._cpu += time.process_time() - before
        return {}

    def time(
        self, call: Callable[[], None], requests: int, *, flush: bool
    ) -> dict[str, float]:
        """Make the calls; returns what they took, and spans since the start.

        An export that is due runs beside them, and is waited for.
        """
        export = self._exports.begin()
        started = time.perf_counter()
        _repeat(call, requests)
        wall = time.perf_counter() - started
        if export:
            export.join()
        self._exports.worked(wall)
        if flush:
            self._instrumented.flush()
        before, self._cpu = self._cpu, time.process_time()
        return {
            "cpu_seconds": self._cpu - before,
            "wall_seconds": wall,
            "spans": self._instrumented.spans(),
            **self._exports.taken(),
        }


def _plainly(call: Callable[[], None], times: int) -> None:
    for _ in range(times):
        call()


_repeat = FunctionType(
    _plainly.__code__.replace(co_stacksize=STACK_WORDS), globals(), "_repeat"
)
"""Repeats a call, with room on Python's stack for all that it calls.

CPython has that stack in chunks of 16 KiB.  From 3.11 until gh-142183 was mended, each
call that crosses the end of one asks the system for the next and then gives it back.
Where the end falls, and how often it is crossed, is chance, and a frame more or less
around a request moves it: that would be measured, not what the frame does.
"""


def serve(instrumented: Instrumented, answers: TextIO) -> None:
    """Do as the input says until it ends."""
    client = Client(instrumented)
    calls = {
        "GET": client.validate,
        "POST": client.issue,
        "SERVICE": client.ask_service,
    }
    meter = Meter(instrumented)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = (
            meter.tidy()
            if "tidy" in order
            else meter.time(
                calls[order["call"]], order["requests"], flush=order["flush"]
            )
        )
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """Keep standard output for the answers; whatever else is printed is log."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        serve(MAKERS[sys.argv[1]](), answers)


if __name__ == "__main__":
    main()
