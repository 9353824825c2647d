"""Live calls, explained by Server-Timing or by the client's measurement."""

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from threading import Thread

import pytest
import requests
from click.testing import CliRunner, Result
from fake_keystone import TIMING, FakeKeystone, password_of, running

from keylag.cli import main
from keylag.services.redis import CONNECTION_VARIABLE, HMAC_KEY_VARIABLE
from keylag.trace.http_exchange import TimingAdapter

USER = {
    "OS_AUTH_TYPE": "v3password",
    "OS_USERNAME": "somebody",
    "OS_PASSWORD": password_of("somebody"),
    "OS_PROJECT_NAME": "project",
    "OS_USER_DOMAIN_ID": "default",
    "OS_PROJECT_DOMAIN_ID": "default",
}


@pytest.fixture(params=[TIMING, None])
def keystone(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeKeystone]:
    """A Keystone with and without Server-Timing; variables have its credentials."""
    for name in (HMAC_KEY_VARIABLE, CONNECTION_VARIABLE, "OS_CLOUD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in USER.items():
        monkeypatch.setenv(name, value)
    with running(timing=request.param) as server:
        monkeypatch.setenv("OS_AUTH_URL", f"{server.url}/v3")
        yield server


def explain(*words: str) -> Result:
    """Return the result of `keylag explain`."""
    return CliRunner().invoke(main, ["explain", *words])


@pytest.mark.parametrize("kind", ["password", "validate"])
def test_live_call_is_explained_by_header_or_client(
    keystone: FakeKeystone, kind: str
) -> None:
    result = explain(f"--call={kind}", "--output=json")

    document = json.loads(result.stdout)
    method = "GET" if kind == "validate" else "POST"
    assert document["call"] == f"{method} /v3/auth/tokens"
    if keystone.timing:
        assert document["source"] == "Server-Timing"
        assert document["wall_seconds"] == pytest.approx(0.01)
    else:
        assert document["source"] == "client"
        assert "KEYLAG_SERVER_TIMING=true" in document["missing"][0]
        assert set(document["parts"]) <= {"connect", "wait", "body"}
        assert 0 < document["parts"]["wait"] < document["client_seconds"]


@pytest.mark.parametrize("keystone", [TIMING], indirect=True)
@pytest.mark.usefixtures("keystone")
def test_failed_calls_explain_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    unsigned = CliRunner().invoke(main, ["trace", "validate"])
    monkeypatch.setenv("OS_PASSWORD", "wrong")
    refused = explain()
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:9/v3")
    unreachable = explain()

    assert f"Set {HMAC_KEY_VARIABLE} and {CONNECTION_VARIABLE}" in unsigned.output
    for result, advice in ((refused, "the password"), (unreachable, "the URL")):
        assert "The call to Keystone at " in result.output
        assert advice in result.output
    assert "it rejects the credentials (HTTP 401)" in refused.output
    assert "http://127.0.0.1:9/v3 failed: Connection refused. " in (unreachable.output)
    assert "urllib3" not in unreachable.output
    assert "Max retries" not in unreachable.output
    assert (unsigned.exit_code, refused.exit_code, unreachable.exit_code) == (1, 1, 1)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="not installed: openssl")
def test_tls_handshake_is_separate_from_connect(tmp_path: Path) -> None:
    """Connections without TLS have no such part."""
    certificate = tmp_path / "both.pem"
    words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost")
    name = ("-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", certificate, "-out", tmp_path / "certificate.pem")
    subprocess.run(["openssl", *words, *name, *files], check=True, capture_output=True)
    public = (tmp_path / "certificate.pem").read_text()
    certificate.write_text(certificate.read_text() + public)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    adapter, session = TimingAdapter(), requests.Session()
    session.mount("https://", adapter)
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"https://127.0.0.1:{server.server_address[1]}/nothing"
        session.get(url, verify=str(tmp_path / "certificate.pem"), timeout=60)
        server.shutdown()

    (exchange,) = adapter.exchanges
    assert list(exchange.parts) == ["connect", "tls", "wait", "body"]
    assert min(exchange.parts.values()) > 0
    assert sum(exchange.parts.values()) < exchange.total_seconds
    assert (exchange.status, exchange.server_timing) == (404, "")
