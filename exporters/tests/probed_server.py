"""Servers for probes: real ones, and ones that misbehave."""

import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRIP_SECONDS = 0.02


class KeystoneStub(ThreadingHTTPServer):
    """Answers /v3; keeps what it was asked."""

    daemon_threads = True

    def __init__(self, delay=0.0, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.delay = delay
        self.clients = []
        self.requests = []
        self.scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path="/v3", host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    """Redirects below /redirect; else the status is the path's number, or 200."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.clients.append(self.client_address)
        self.server.requests.append((self.path, self.headers))
        time.sleep(self.server.delay)
        number = self.path.strip("/")
        redirects = self.path == "/redirect"
        self.send_response(
            302 if redirects else int(number) if number.isdigit() else 200
        )
        if redirects:
            self.send_header("Location", "/v3")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Log nothing."""


class MisbehavingServer:
    """Accepts connections, reads the request, and then calls `answer` with each."""

    def __init__(self, answer):
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v3"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(
                    target=self._handle, args=(connection,), daemon=True
                ).start()

    def _handle(self, connection):
        with suppress(OSError), connection:
            connection.recv(10_000)
            self._answer(connection)

    def close(self):
        self._listening.close()


def stay_silent(connection):
    connection.recv(1)


def close_at_once(_):
    pass


def send(data):
    def answer(connection):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)

    return answer


def send_forever(start, part, pause=0.0):
    def answer(connection):
        connection.sendall(start)
        while True:
            connection.sendall(part)
            time.sleep(pause)

    return answer


def make_certificate(folder):
    """Return a server's TLS context and the file with its certificate."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
