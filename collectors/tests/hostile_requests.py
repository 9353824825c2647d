"""Malformed and malicious requests from a seeded generator."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from keystone_client import environ_of

METHODS = (
    *("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"),
    *("TRACE", "CONNECT", "PROPFIND", "get", "", "G E T", "SSTP_DUPLEX_POST"),
)
AUTH_METHODS = (
    *("application_credential", "external", "kerberos", "mapped", "oauth1"),
    *("openid", "password", "saml2", "token", "totp", "x509", "other", "multiple"),
)
PREFIXES = ("", "/", "//v3", "/v3", "/v2.0", "/v3/", "/v3//", "/healthcheck")
AGENTS = ("curl", "python-keystoneclient", "nova", "openstacksdk", "\xff")
LENGTHS = ("-1", "x", str(10**9))


class HostileRequests:
    """An endless source of requests; `rules` are the routes that the server knows."""

    def __init__(self, seed: int, rules: list[str]) -> None:
        self._random = Random(seed)  # noqa: S311 - no secret
        self._rules = rules
        self._kinds = (self._log_in, self._walk, self._wander, self._validate)

    def requests(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield the WSGI environments of as many requests."""
        for _ in range(number):
            yield self._random.choice(self._kinds)()

    def _log_in(self) -> dict[str, Any]:
        """Log in with any subset of methods, known and unknown, without data."""
        size = self._random.randrange(len(AUTH_METHODS) + 1)
        names = self._random.sample(AUTH_METHODS, size)
        names += [self._word() for _ in range(self._random.randrange(3))]
        self._random.shuffle(names)
        identity = {"methods": names, **{name: {} for name in names}}
        return self._environ(
            "POST", "/v3/auth/tokens", {"auth": {"identity": identity}}
        )

    def _walk(self) -> dict[str, Any]:
        """Send any method to any route, with unknown ids."""
        parts = self._random.choice(self._rules).split("/")
        path = "/".join(self._word() if "<" in part else part for part in parts)
        return self._environ(self._random.choice(METHODS), path + self._tail())

    def _wander(self) -> dict[str, Any]:
        """Request unknown paths."""
        words = "/".join(self._word() for _ in range(self._random.randrange(4)))
        path = f"{self._random.choice(PREFIXES)}/{words}"
        return self._environ(self._random.choice(METHODS), path + self._tail())

    def _validate(self) -> dict[str, Any]:
        """Validate an invalid token."""
        method = self._random.choice(("GET", "HEAD", "DELETE"))
        return self._environ(method, "/v3/auth/tokens")

    def _environ(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        environ = environ_of("GET", "/", body, self._headers())
        environ.update(REQUEST_METHOD=method, PATH_INFO=path, RAW_URI=path)
        if self._random.random() < 0.05:
            environ["CONTENT_LENGTH"] = self._random.choice(LENGTHS)
        return environ

    def _headers(self) -> dict[str, str]:
        said = {
            "User-Agent": self._random.choice(AGENTS) + self._word(),
            "X-Auth-Token": self._word(),
            "X-Subject-Token": self._word(),
            "X-Service-Token": self._word(),
            "X-User-Name": self._random.choice(("nova", "glance", self._word())),
            "X-Forwarded-For": self._word(),
            "Forwarded": f"for={self._word()}",
            "Host": f"{self._word()}.example",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Origin": f"http://{self._word()}.example",
            "Content-Type": self._random.choice(("application/json", self._word())),
            "OpenStack-Region": self._word(),
            "traceparent": f"00-{self._random.getrandbits(128):032x}-{1:016x}-00",
            "baggage": f"{self._word()}={self._word()}",
        }
        kept = self._random.sample(sorted(said), self._random.randrange(len(said)))
        return {name: said[name] for name in kept}

    def _tail(self) -> str:
        return self._random.choice(("", "", "/", "//", "/.", f"/{self._word()}"))

    def _word(self) -> str:
        length = self._random.randrange(1, 12)
        return "".join(self._random.choices(ascii_lowercase + digits, k=length))
