"""The command as an operator runs it: several sources, one failing, TLS, signals."""

import contextlib
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import bcrypt
import pytest
from exporter_helpers import LOGS, free_port

from keylag_exporters.collector import Running, SourceCollector
from keylag_exporters.families import Families
from keylag_exporters.model import Declared, UnreachableError
from keylag_exporters.web_config import WebConfigError, load

COMMAND = [sys.executable, "-m", "keylag_exporters"]


class Exporter:
    """A running command, and what it says on /metrics."""

    def __init__(self, *words, env=None, scheme="http"):
        port = free_port()
        self.url = f"{scheme}://127.0.0.1:{port}/metrics"
        self.process = subprocess.Popen(
            [*COMMAND, *words, f"--listen=127.0.0.1:{port}"],
            env={**os.environ, **(env or {})},
            stderr=subprocess.PIPE,
        )

    def read(self, headers=None, context=None):
        request = urllib.request.Request(self.url, headers=headers or {})
        for _ in range(100):
            try:
                with urllib.request.urlopen(
                    request, timeout=20, context=context
                ) as got:
                    return got.read().decode()
            except urllib.error.HTTPError:
                raise
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.1)
        return pytest.fail("it does not listen")

    def value(self, sample):
        for line in self.read().splitlines():
            if line.startswith(sample):
                return float(line.rpartition(" ")[2])
        return None

    def stop(self, number=signal.SIGTERM):
        """Return the seconds that stopping took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=10)
        return time.monotonic() - began


@pytest.fixture
def run():
    started = []

    def start(*words, **more):
        started.append(Exporter(*words, **more))
        return started[-1]

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            one.process.kill()
        one.process.wait()
        one.process.stderr.close()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "slow.log"
    path.write_bytes(LOGS[0].read_bytes())
    return path


class Made:
    """A source that does what it is told."""

    def __init__(self, action):
        self.action = action

    def collect(self):
        families = Families([Declared("made", "gauge", "Made.")])
        families.add("made", self.action() or 1)
        return families

    def close(self):
        pass


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda: None, (1, 1, None)),
        (raising(UnreachableError("gone")), (0, 0, "unreachable")),
        (raising(ValueError("bug")), (1, 0, "error")),
        (lambda: time.sleep(1), (0, 0, "timeout")),
    ],
    ids=["well", "unreachable", "error", "timeout"],
)
def test_each_source_tells_how_it_fared_and_silences_no_other(
    action, expected, samples
):
    sources = [Running("a", Made(action), 0.2), Running("b", Made(lambda: None), 0.2)]
    found = samples(SourceCollector(sources).collect())
    up, success, reason = expected

    assert found["keylag_exporter_source_up", (("source", "a"),)] == up
    assert found["keylag_exporter_source_success", (("source", "a"),)] == success
    assert found["keylag_exporter_source_success", (("source", "b"),)] == 1
    assert ("made", ()) in found
    if reason:
        labels = (("reason", reason), ("source", "a"))
        assert found["keylag_exporter_source_failures_total", labels] == 1


@pytest.mark.stack
class Door:
    """A lock that tells of each who comes to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.came = threading.Semaphore(0)

    def __enter__(self):
        self.came.release()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_all_who_wait_get_one_answer():
    """A Prometheus that asks faster than it is answered makes no heap of scrapes."""
    go_on, begun = threading.Event(), []
    source = Made(lambda: begun.append(1) or go_on.wait(60))
    collector = SourceCollector([Running("a", source, 60)])
    collector._lock = door = Door()

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(collector.collect) for _ in range(4)]
        for _ in answers:
            assert door.came.acquire(timeout=60)
        go_on.set()

    assert all(answer.result() for answer in answers)
    assert len(begun) == 2


def test_all_runs_what_the_file_says_and_the_living_speak(run, log, tmp_path):
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
    time.sleep(1.5)
    text = exporter.read()
    calls = [line for line in text.splitlines() if "log_calls_total{" in line]
    assert sum(float(line.rpartition(" ")[2]) for line in calls) == 1019


@pytest.mark.stack
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_a_second(run, log, number):
    exporter = run("slow-log", f"--file={log}")
    exporter.read()

    assert exporter.stop(number) < 1
    assert exporter.process.returncode == 0


@pytest.mark.stack
def test_it_serves_on_while_the_server_is_frozen_dead_and_back(run, mariadb, log):
    mariadb.execute("DROP USER IF EXISTS keylag@'127.0.0.1'")
    mariadb.execute("CREATE USER keylag@'127.0.0.1' IDENTIFIED BY 'p'")
    mariadb.execute("CREATE DATABASE IF NOT EXISTS stats")
    mariadb.execute("GRANT ALL ON stats.* TO keylag@'127.0.0.1'")
    up = 'keylag_exporter_source_up{source="revocations"}'
    slow_log = 'keylag_exporter_source_success{source="slow-log"}'
    exporter = run(
        "all", f"--revocations-port={mariadb.port}", "--revocations-timeout=1",
        f"--slow-log-file={log}", "--revocations-database=stats",
        env={"KEYLAG_REVOCATIONS_PASSWORD": "p"},
    )  # fmt: skip

    assert exporter.value(up) == 1
    mariadb.freeze()
    assert (exporter.value(up), exporter.value(slow_log)) == (0, 1)
    mariadb.thaw()
    mariadb.stop()
    time.sleep(1)
    assert (exporter.value(up), exporter.value(slow_log)) == (0, 1)
    mariadb.start()
    assert exporter.value(up) == 1
    assert exporter.stop() < 1


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


@pytest.mark.stack
def test_tls_and_basic_authentication_guard_everything(run, log, web_config):
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
        ("unknown_key: 1", "not supported: unknown_key"),
        ("basic_auth_users: {a: plain}", "no bcrypt hash"),
        ("tls_server_config: {cert_file: x, key_file: y}", "tls_server_config"),
        ("[1", "cannot read"),
        ("- 1", "a mapping is expected"),
    ],
)
def test_a_web_config_that_cannot_be_honoured_is_refused(tmp_path, text, message):
    path = tmp_path / "web.yml"
    path.write_text(text)

    with pytest.raises(WebConfigError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slow-log"], "file is needed"),
        (["slow-log", "--file=x", "--listen=127.0.0.1:x"], "cannot listen"),
        (["all"], "nothing to run"),
        (["slow-log", "--once=/nonexistent"], "No such file"),
        (["proxysql", "--password-file=/nonexistent"], "No such file"),
        (["proxysql", "--password=secret"], "No such option"),
        (["all", "--config=/nonexistent"], "cannot read"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, message):
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, check=False, text=True
    )

    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
