"""The command as an operator runs it: all, failures, TLS, signals, errors."""

import gzip
import importlib.metadata
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import bcrypt
import pytest
from exporter_helpers import COMMAND, LOGS, free_port, wait_until
from prometheus_client.parser import text_string_to_metric_families

from keylag_exporters.web_config import WebConfigError, load


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "slow.log"
    path.write_bytes(LOGS[0].read_bytes())
    return path


@pytest.mark.stack
def test_all_exports_healthy_sources_beside_failing_ones(run, log, tmp_path):
    config = tmp_path / "exporter.toml"
    config.write_text(
        f'[slow-log]\nfile = "{log}"\nfrom-start = true\n'
        f"[memcached]\naddress = '127.0.0.1:{free_port()}'\n"
        f"[revocations]\nport = {free_port()}\ntimeout = 1.0\n"
    )
    exporter = run("all", f"--config={config}")

    assert exporter.value('keylag_exporter_source_success{source="slow-log"}') == 1
    assert exporter.value('keylag_exporter_source_up{source="revocations"}') == 0
    assert exporter.value("memcached_up") == 0

    def calls():
        lines = exporter.read().splitlines()
        counts = [line for line in lines if "log_calls_total{" in line]
        return sum(float(line.rpartition(" ")[2]) for line in counts)

    wait_until(lambda: calls() == 1019)


@pytest.mark.stack
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)]
)
def test_signal_stops_the_command_within_a_second(run, log, number, code):
    exporter = run("slow-log", f"--file={log}")
    exporter.read()

    assert exporter.stop(number) < 1
    assert exporter.process.returncode == code


@pytest.mark.stack
@pytest.mark.parametrize("lost", [False, True], ids=["saved", "lost"])
def test_exit_code_is_1_if_the_position_was_not_saved(run, log, tmp_path, lost):
    state = tmp_path / "missing" / "state.json"
    exporter = run("slow-log", f"--file={log}", f"--state={state}", "--from-start")
    exporter.read()
    if lost:
        state.unlink()
        state.parent.rmdir()
        state.parent.touch()
    exporter.stop()
    stderr = exporter.process.stderr.read().decode()

    assert exporter.process.returncode == lost
    assert state.exists() != lost
    assert ("Error: the state was not saved" in stderr) == lost
    assert "Traceback" not in stderr


@pytest.mark.stack
def test_exposition_is_gzip_compressed_on_request(run, log):
    exporter = run("slow-log", f"--file={log}", "--from-start")
    exporter.read()
    request = urllib.request.Request(exporter.url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = gzip.decompress(answer.read()).decode()
        headers = answer.headers
    names = {one.name for one in text_string_to_metric_families(text)}

    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert {"keylag_slow_log_calls", "keylag_exporter_source_up"} <= names
    assert "process_cpu_seconds" in names


@pytest.fixture
def web_config(tmp_path):
    """A web configuration file with a certificate and one user."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
         "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    path = tmp_path / "web.yml"
    path.write_text(
        "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
        f"basic_auth_users:\n  prometheus: {hashed}\n"
    )
    return path


def test_client_certificates_that_nobody_asks_for_are_an_error(web_config):
    text = web_config.read_text()
    with_ca = "key_file: key.pem\n  client_ca_file: cert.pem\n"
    web_config.write_text(text.replace("key_file: key.pem\n", with_ca))

    with pytest.raises(WebConfigError, match="client_ca_file needs a client_auth"):
        load(web_config)


@pytest.mark.stack
def test_tls_and_basic_authentication_protect_metrics(run, log, web_config):
    exporter = run(
        "slow-log", f"--file={log}", f"--web-config-file={web_config}", scheme="https"
    )
    context = ssl.create_default_context(cafile=web_config.with_name("cert.pem"))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        exporter.read(context=context)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        exporter.read({"Authorization": "Basic cHJvbWV0aGV1czp3cm9uZw=="}, context)

    good = {"Authorization": "Basic cHJvbWV0aGV1czpzZWNyZXQ="}
    assert "keylag_slow_log_classes" in exporter.read(good, context)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unknown_key: 1", "unsupported keys: unknown_key"),
        ("basic_auth_users: {a: plain}", "not a bcrypt hash"),
        ("tls_server_config: {cert_file: x, key_file: y}", "tls_server_config"),
        ("[1", "cannot read"),
        ("- 1", "expected a mapping"),
        ("basic_auth_users: [a]", "basic_auth_users: expected a mapping"),
    ],
)
def test_unsupported_web_config_is_rejected(tmp_path, text, message):
    path = tmp_path / "web.yml"
    path.write_text(text)

    with pytest.raises(WebConfigError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["slow-log"], 2, "option file is required"),
        (["slow-log", "--file=x", "--listen=127.0.0.1:x"], 2, "cannot listen"),
        (["memcached", "--listen=127.0.0.1:70000"], 2, "a number below 65536"),
        (["memcached", "--listen=192.0.2.1:80"], 1, "Cannot assign requested address"),
        (["memcached", "--address=word"], 2, "a number below 65536, not word"),
        (["probe", "--url=keystone:5000"], 2, "a URL is such as http://keystone"),
        (["mysql", "--port=x"], 2, "a number below 65536, not x"),
        (["uwsgi", "--address=127.0.0.1:70000"], 2, "a number below 65536"),
        (["revocations", "--port=70000"], 2, "a number below 65536"),
        (["revocations", "--port=x"], 2, "a number below 65536, not x"),
        (["processes", "--groups=x"], 2, "expected NAME=PATTERN, not 'x'"),
        (["all"], 2, "no source configured"),
        (["slow-log", "--once=/nonexistent"], 1, "No such file"),
        (["proxysql", "--password-file=/nonexistent"], 2, "No such file"),
        (["proxysql", "--password=secret"], 2, "No such option"),
        (["all", "--config=/nonexistent"], 2, "cannot read"),
        (["memcached", "--web-config-file=/"], 2, "cannot read /"),
        (["proxysql", "--tls-ca=/nowhere"], 2, "tls-ca: cannot read /nowhere"),
        (["proxysql", "--top=-1"], 2, "top: invalid value '-1'"),
    ],
)
def test_usage_errors_are_reported_without_traceback(words, code, message):
    done = run_command(*words)

    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "This is a bug" not in done.stderr


def run_command(*words):
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, check=False, text=True
    )


def test_debug_prints_the_traceback():
    done = run_command("--debug", "memcached", "--listen=127.0.0.1:70000")

    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("not 70000")


def test_version_is_the_package_version():
    version = importlib.metadata.version("keylag-exporters")

    assert run_command("--version").stdout == f"keylag-exporter, version {version}\n"
