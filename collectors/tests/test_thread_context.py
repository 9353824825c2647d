"""A thread of a request has no timer, even if it inherits the context."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: Serves a request that starts a thread, and prints the timers of both.
SERVE = """
import json, sys, threading
from keylag_otel.response import ResponseRecorder
from keylag_otel.request_timer import Aggregator, start_timer, timer_var, wrap
from keylag_otel.request_timer import wrap_context_manager
from keylag_otel.model import cell_of
from contextlib import nullcontext

seen = {"inherits": bool(sys.flags.thread_inherit_context)}
THREAD, BODY, OWN = (cell_of(p, "other") for p in ("sql", "cache", "policy"))

def work():
    seen["inherited"] = timer_var.get() is not None

def in_thread():
    wrap(work, 0, THREAD)()
    with wrap_context_manager(nullcontext, 0, BODY)():
        pass

def application(environ, start_response):
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    wrap(str, 0, OWN)()
    return []

def finish_trace(timer, status):
    seen["cells"] = sorted(timer.self_times())

timer = start_timer({"REQUEST_METHOD": "GET"})
timer.records_events = True
recorder = ResponseRecorder(timer, print, Aggregator((), 0), str, finish_trace)
recorder.serve(application)
seen["expected"] = sorted({START_CELL, OWN})
print(json.dumps(seen))
"""


def served(inherit: str, pure: str) -> dict[str, object]:
    """Serve in another Python process; return its output."""
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
def test_thread_does_not_switch_the_timer_of_its_starter(inherit, pure) -> None:
    seen = served(inherit, pure)

    assert seen["inherits"] is seen["inherited"] is (inherit == "1")
    assert seen["cells"] == seen["expected"]
