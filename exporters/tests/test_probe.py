"""Probes of real HTTP and TLS servers, and of servers that misbehave."""

import re
import socket
import time

import pytest
from exporter_helpers import free_port
from probed_server import (
    DRIP_SECONDS,
    KeystoneStub,
    MisbehavingServer,
    close_at_once,
    make_certificate,
    send,
    send_forever,
    stay_silent,
)

from keylag_exporters.http_probe import MAX_RESPONSE_BYTES, HttpProbe, parse_url
from keylag_exporters.model import UnreachableError
from keylag_exporters.probe import PHASES, SOURCE_TYPE
from keylag_exporters.settings import SettingsError

TIMEOUT = 0.5
LONG = 30.0
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def keystone():
    started = []

    def start(**more):
        started.append(KeystoneStub(**more))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture
def misbehaving():
    started = []

    def start(answer):
        started.append(MisbehavingServer(answer))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def create_source(settings):
    def create(url, **more):
        return SOURCE_TYPE.create(
            settings(SOURCE_TYPE, {"url": url, "timeout": LONG, **more})
        )

    return create


def in_phase(found, name, phase):
    return found[name, (("phase", phase),)]


def failures(found):
    return {
        dict(labels)["phase"]: value
        for (name, labels), value in found.items()
        if name == "keylag_probe_failures_total" and value
    }


def test_wait_for_the_response_is_the_phase_processing(
    keystone, create_source, samples
):
    server = keystone(delay=0.2)
    found = samples(create_source(server.url()).collect())
    name = "probe_http_duration_seconds"
    seconds = {phase: in_phase(found, name, phase) for phase in PHASES}

    assert found["probe_success", ()] == 1
    assert found["probe_http_status_code", ()] == 200
    assert found["probe_duration_seconds", ()] == pytest.approx(sum(seconds.values()))
    assert found["probe_dns_lookup_time_seconds", ()] == seconds["resolve"]
    assert seconds["processing"] >= 0.2
    assert seconds["processing"] > 0.5 * sum(seconds.values())
    assert seconds["connect"] > 0
    assert seconds["tls"] == 0
    assert failures(found) == {}


def test_histogram_has_all_probes(keystone, create_source, samples):
    source = create_source(keystone().url())
    for _ in range(3):
        found = samples(source.collect())
    name = "keylag_probe_phase_duration_seconds"
    infinite = (("le", "+Inf"), ("phase", "connect"))

    assert in_phase(found, f"{name}_count", "processing") == 3
    assert in_phase(found, f"{name}_sum", "processing") > 0
    assert found[f"{name}_bucket", infinite] == 3
    assert (f"{name}_count", (("phase", "tls"),)) not in found


def test_each_probe_has_its_own_connection(keystone, create_source):
    server = keystone()
    source = create_source(server.url("/v3?a=b#c", host="localhost"))
    for _ in range(3):
        source.collect()
    path, headers = server.requests[0]

    assert len(set(server.clients)) == 3
    assert path == "/v3?a=b"
    assert headers["Connection"] == "close"
    assert headers["Host"] == f"localhost:{server.server_port}"


def test_url_without_a_path_asks_for_the_root(keystone, create_source):
    server = keystone()
    create_source(server.url("")).collect()

    assert [path for path, _ in server.requests] == ["/"]


def test_tls_handshake_is_a_phase(keystone, create_source, samples, tmp_path):
    context, certificate = make_certificate(tmp_path)
    source = create_source(keystone(tls=context).url(), tls_ca=str(certificate))
    found = samples(source.collect())

    assert found["probe_success", ()] == 1
    assert in_phase(found, "probe_http_duration_seconds", "tls") > 0


def test_unknown_certificate_fails_the_phase_tls(
    keystone, create_source, samples, tmp_path
):
    context, _ = make_certificate(tmp_path)
    with pytest.raises(UnreachableError, match=r"tls failed.*certificate") as caught:
        create_source(keystone(tls=context).url()).collect()

    assert failures(samples(caught.value.families)) == {"tls": 1}


def test_unreadable_certificates_are_named(create_source):
    with pytest.raises(SettingsError, match=f"tls-ca: cannot read {__file__}"):
        create_source("https://keystone/v3", tls_ca=__file__)


def test_server_without_tls_fails_the_phase_tls(keystone, create_source):
    url = keystone().url().replace("http:", "https:")

    with pytest.raises(UnreachableError, match="tls failed"):
        create_source(url).collect()


@pytest.mark.parametrize(
    ("path", "status"), [("/redirect", 302), ("/300", 300), ("/503", 503)]
)
def test_status_other_than_2xx_is_a_measured_failure(
    keystone, create_source, samples, path, status
):
    """All metrics are there, so the source itself succeeds."""
    server = keystone()
    found = samples(create_source(server.url(path)).collect())

    assert found["probe_success", ()] == 0
    assert found["probe_http_status_code", ()] == status
    assert failures(found) == {"status": 1}
    assert len(server.requests) == 1


def test_closed_port_fails_the_phase_connect(create_source, samples):
    url = f"http://127.0.0.1:{free_port()}/v3"
    with pytest.raises(UnreachableError, match=r"connect failed.*refused") as caught:
        create_source(url).collect()
    found = samples(caught.value.families)

    assert found["probe_success", ()] == 0
    assert found["probe_http_status_code", ()] == 0
    assert failures(found) == {"connect": 1}


def test_next_address_is_tried_if_the_first_refuses(keystone, monkeypatch):
    server = keystone()
    look_up = socket.getaddrinfo

    def add_a_dead_address(host, port, **more):
        dead = look_up("127.0.0.1", free_port(), type=socket.SOCK_STREAM)
        return [*dead, *look_up(host, port, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", add_a_dead_address)

    assert HttpProbe(server.url(), LONG).run().status == 200


def test_unknown_name_fails_the_phase_resolve(create_source):
    with pytest.raises(UnreachableError, match="resolve failed"):
        create_source("http://keystone.invalid/v3").collect()


def test_slow_resolver_is_abandoned(monkeypatch):
    look_up = socket.getaddrinfo

    def hang(host, *arguments, flags=0, **more):
        if not flags & socket.AI_NUMERICHOST:
            time.sleep(20 * TIMEOUT)
        return look_up(host, *arguments, flags=flags, **more)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    result = HttpProbe("http://localhost/v3", TIMEOUT).run()

    assert (result.failed_phase, list(result.seconds)) == ("resolve", ["resolve"])
    assert result.reason == "no end within 0.5 seconds"
    assert result.total_seconds < 10 * TIMEOUT


@pytest.mark.parametrize(
    ("answer", "phase", "reason"),
    [
        (stay_silent, "processing", "no end within"),
        (close_at_once, "processing", "closed connection|reset"),
        (send(bytes(range(256))), "transfer", "no HTTP response"),
        (send(b"SSH-2.0-OpenSSH\r\n"), "transfer", "no HTTP response: .*SSH-2.0"),
        (send(OK + b"Content-Length: 10\r\n\r\nhalf"), "transfer", "cut off"),
        (send(OK + b"Transfer-Encoding: chunked\r\n\r\nzz"), "transfer", "cut off"),
        (send_forever(OK, b"X: y\r\n"), "transfer", "100 headers"),
        (send_forever(OK + b"\r\n", bytes(4096)), "transfer", "longer than"),
        (
            send_forever(
                OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n", bytes(4096)
            ),
            "transfer",
            "longer than",
        ),
        (
            send_forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
            "transfer",
            "longer than",
        ),
        (send_forever(b"H", b"", pause=1), "transfer", "no end within"),
        (send_forever(OK, b"X", DRIP_SECONDS), "transfer", "no end within"),
        (send_forever(OK + b"\r\n", b"X", DRIP_SECONDS), "transfer", "no end within"),
    ],
)
def test_misbehaving_server_fails_in_time_with_phase_and_reason(
    misbehaving, answer, phase, reason
):
    timeout = TIMEOUT if "no end" in reason else LONG
    result = HttpProbe(misbehaving(answer).url, timeout).run()

    assert (result.failed_phase, [*result.seconds][-1]) == (phase, phase)
    assert re.search(reason, result.reason)
    assert len(result.reason) < 200
    assert result.total_seconds < LONG / 2


def test_response_of_the_greatest_size_is_read(misbehaving):
    head = OK + b"\r\n"
    server = misbehaving(send(head + bytes(MAX_RESPONSE_BYTES - len(head))))

    assert HttpProbe(server.url, LONG).run().reason == ""


@pytest.mark.stack
@pytest.mark.parametrize(
    ("answer", "phase"), [(stay_silent, "processing"), (send(b"\0" * 9), "transfer")]
)
def test_exporter_reports_the_phase_and_counts_the_failure(
    run, misbehaving, answer, phase
):
    url = misbehaving(answer).url
    exporter = run("probe", f"--url={url}", "--interval=0", f"--timeout={TIMEOUT}")
    lines = exporter.read().splitlines()

    assert "probe_success 0.0" in lines
    assert f'keylag_probe_failures_total{{phase="{phase}"}} 1.0' in lines
    assert 'keylag_exporter_source_up{source="probe"} 0.0' in lines
    reason = '{reason="unreachable",source="probe"}'
    assert f"keylag_exporter_source_failures_total{reason} 1.0" in lines


@pytest.mark.parametrize(
    "text",
    ["keystone:5000/v3", "ftp://keystone/v3", "http://", "http://k:99999/", "http://k:x/",
     "http://k/a b", "http://k/\n", "http://" + "k" * 64 + "/"],
)  # fmt: skip
def test_unusable_urls_are_rejected(text):
    with pytest.raises(ValueError, match="a URL is such as http://keystone:5000/v3"):
        parse_url(text)


def test_url_with_a_password_is_rejected_without_naming_it():
    with pytest.raises(ValueError, match="no user and password") as caught:
        parse_url("http://user:secret@keystone/v3")

    assert "secret" not in str(caught.value)
