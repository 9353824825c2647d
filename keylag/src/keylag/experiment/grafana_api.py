"""Requests to Grafana's HTTP API."""

import os
from dataclasses import dataclass
from typing import Any, Final

import requests

TOKEN_VARIABLE: Final = "KEYLAG_GRAFANA_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable: token of a service account with the role *Editor*."""


@dataclass(frozen=True)
class Grafana:
    """A Grafana by its base URL, which may have user and password for a token."""

    url: str
    timeout_seconds: float

    def get(self, path: str, parameters: dict[str, str] | None = None) -> Any:
        """Return the answer to a GET; raises requests.RequestException."""
        return self._send("GET", path, params=parameters)

    def post(self, path: str, content: Any) -> Any:
        """Return the answer to a POST of JSON; raises requests.RequestException."""
        return self._send("POST", path, json=content)

    def _send(self, method: str, path: str, **content: Any) -> Any:
        token = os.environ.get(TOKEN_VARIABLE)
        answer = requests.request(
            method,
            f"{self.url.rstrip('/')}/api/{path}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=self.timeout_seconds,
            **content,
        )
        answer.raise_for_status()
        return answer.json()


def error_name(error: requests.RequestException) -> str:
    """Name an error without the URL, which may contain a password."""
    code = "" if error.response is None else f" {error.response.status_code}"
    return f"{type(error).__name__}{code}"
