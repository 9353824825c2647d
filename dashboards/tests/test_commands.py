"""Exit codes and error messages of both commands."""

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from threading import Thread

import pytest

GENERATOR = "keylag_dashboards"
CHECK = "keylag_dashboards.check"


def run_module(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a module as a command."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        stdout=more.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        check=False,
        text=True,
    )


@pytest.fixture(scope="module")
def no_prometheus() -> Iterator[str]:
    """Yield the address of a web server that is not Prometheus."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([CHECK], 2, "the following arguments are required: URL"),
        ([CHECK, "word"], 2, "'word' is not an absolute URL"),
        ([CHECK, "http://127.0.0.1:70000"], 2, "is not an absolute URL"),
        (
            [CHECK, "http://127.0.0.1:1"],
            1,
            "Error: http://127.0.0.1:1 does not answer: Connection refused.",
        ),
        ([GENERATOR, "--runbook-url=word"], 2, "'word' is not an absolute URL"),
        ([GENERATOR, "--output=/dev/null/x"], 1, "Error: Not a directory: /dev/null"),
    ],
)
def test_errors_are_reported_without_traceback(
    words: list[str], code: int, said: str
) -> None:
    done = run_module(*words)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_check_rejects_other_servers(no_prometheus: str) -> None:
    done = run_module(CHECK, no_prometheus)

    assert done.returncode == 1
    assert done.stderr == (f"Error: {no_prometheus} is not a Prometheus server.\n")


def test_keylag_debug_prints_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYLAG_DEBUG", "1")
    done = run_module(CHECK, "http://127.0.0.1:1")

    assert "Traceback" in done.stderr
    assert done.stderr.endswith("does not answer: Connection refused.\n")


@pytest.mark.parametrize("module", [GENERATOR, CHECK])
def test_version_is_the_package_version(module: str) -> None:
    said = run_module(module, "--version").stdout

    assert said == f"keylag-dashboards {version('keylag-dashboards')}\n"
