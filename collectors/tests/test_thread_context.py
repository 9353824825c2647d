"""A thread that a request starts has no clock, also where it inherits the context."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: Serves a request that starts a thread, and tells what both have seen.
SERVE = """
import json, sys, threading
from keylag_otel.answer import Answer
from keylag_otel.clock import Sums, active, start, watch, watch_body
from keylag_otel.model import cell_of
from contextlib import nullcontext

seen = {"inherits": bool(sys.flags.thread_inherit_context)}
THREAD, BODY, OWN = (cell_of(p, "other") for p in ("sql", "cache", "policy"))

def work():
    seen["inherited"] = active.get() is not None

def in_thread():
    watch(work, 0, THREAD)()
    with watch_body(nullcontext, 0, BODY)():
        pass

def application(environ, start_response):
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    watch(str, 0, OWN)()
    return []

def traced(clock, status):
    seen["cells"] = sorted(clock.spent())

clock = start({"REQUEST_METHOD": "GET"})
clock.writes = True
Answer(clock, print, Sums((), 0), str, traced).serve(application)
seen["expected"] = sorted({START_CELL, OWN})
print(json.dumps(seen))
"""


def served(inherit: str, pure: str) -> dict[str, object]:
    """Serve in a Python of its own; return what was seen."""
    script = SERVE.replace("START_CELL", "cell_of('wsgi', 'other')")
    run = subprocess.run(
        [sys.executable, "-X", f"thread_inherit_context={inherit}", "-c", script],
        env={**os.environ, "KEYLAG_PURE_PYTHON": pure},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="new in Python 3.14")
@pytest.mark.parametrize("pure", ["true", "false"], ids=["python", "c"])
@pytest.mark.parametrize("inherit", ["0", "1"])
def test_a_thread_does_not_turn_the_clock_of_the_request_that_started_it(
    inherit, pure
) -> None:
    seen = served(inherit, pure)

    assert seen["inherits"] is seen["inherited"] is (inherit == "1")
    assert seen["cells"] == seen["expected"]
