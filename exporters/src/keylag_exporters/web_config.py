"""The web configuration file of Prometheus and its exporters.

Supported are `tls_server_config` (cert_file, key_file, client_ca_file,
client_auth_type, min_version) and `basic_auth_users`. Any other key is an error,
because an ignored key may be a protection that the operator relies on.

Format: https://prometheus.io/docs/prometheus/latest/configuration/https/
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bcrypt
import yaml

from keylag_exporters.settings import SettingsError

_TLS_KEYS = {
    "cert_file",
    "key_file",
    "client_ca_file",
    "client_auth_type",
    "min_version",
}
_KEYS = {"tls_server_config", "basic_auth_users"}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
# Compared for unknown users, so that response times do not reveal which users exist.
_DUMMY_HASH = b"$2b$10$XQq43wrsxm3FQpTWvRWPzOpNJnLP4PsqcPLPEHXpmXdPDZfkDFiNi"
_MAX_VERIFIED = 100


class WebConfigError(SettingsError):
    """The web configuration file is invalid or unsupported."""


@dataclass
class WebConfig:
    """Protection of `/metrics`: TLS and users; none by default."""

    tls: ssl.SSLContext | None = None
    users: dict[str, bytes] = field(default_factory=dict)
    _salt: bytes = field(default_factory=lambda: os.urandom(16))
    _verified: set[bytes] = field(default_factory=set)

    def is_authorized(self, authorization: str) -> bool:
        """Return whether an Authorization header has a user's password.

        bcrypt is slow by design, so verified credentials are cached as keyed hashes.
        """
        if not self.users:
            return True
        user, password = _credentials(authorization)
        digest = hmac.digest(self._salt, f"{user}\0{password}".encode(), hashlib.sha256)
        if digest in self._verified:
            return True
        hashed = self.users.get(user, _DUMMY_HASH)
        if not bcrypt.checkpw(password.encode()[:72], hashed) or user not in self.users:
            return False
        if len(self._verified) >= _MAX_VERIFIED:
            self._verified.clear()
        self._verified.add(digest)
        return True


def load(path: Path | None) -> WebConfig:
    """Return a web configuration; without a path, one without protection.

    Raises WebConfigError.
    """
    if path is None:
        return WebConfig()
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"cannot read {path}: {error}"
        raise WebConfigError(message) from error
    _check_keys(content, _KEYS, str(path))
    tls = content.get("tls_server_config")
    users = content.get("basic_auth_users") or {}
    if not isinstance(users, dict):
        message = f"{path}: basic_auth_users: expected a mapping"
        raise WebConfigError(message)
    return WebConfig(
        tls=_tls_context(tls, path.parent) if tls else None,
        users={
            str(name): _parse_hash(str(name), value) for name, value in users.items()
        },
    )


def _check_keys(section: Any, supported: set[str], where: str) -> None:
    if not isinstance(section, dict):
        message = f"{where}: expected a mapping"
        raise WebConfigError(message)
    unknown = sorted(set(section) - supported)
    if unknown:
        message = f"{where}: unsupported keys: {', '.join(map(str, unknown))}"
        raise WebConfigError(message)


def _parse_hash(user: str, value: Any) -> bytes:
    """Return a user's bcrypt hash; raise WebConfigError for any other text."""
    hashed = str(value).encode()
    try:
        bcrypt.checkpw(b"", hashed)
    except ValueError as error:
        message = f"basic_auth_users: the value of {user!r} is not a bcrypt hash"
        raise WebConfigError(message) from error
    return hashed


def _tls_context(section: Any, folder: Path) -> ssl.SSLContext:
    """Return the context of a tls_server_config; paths are relative to the file."""
    _check_keys(section, _TLS_KEYS, "tls_server_config")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.minimum_version = _VERSIONS[section.get("min_version", "TLS12")]
        context.load_cert_chain(
            folder / section["cert_file"], folder / section["key_file"]
        )
        if ca := section.get("client_ca_file"):
            context.load_verify_locations(folder / ca)
        context.verify_mode = _CLIENT_AUTH[
            section.get("client_auth_type", "NoClientCert")
        ]
        if ca and context.verify_mode == ssl.CERT_NONE:
            message = "tls_server_config: client_ca_file needs a client_auth_type"
            raise WebConfigError(message)
    except (KeyError, OSError) as error:
        message = f"tls_server_config: {error}"
        raise WebConfigError(message) from error
    return context


def _credentials(authorization: str) -> tuple[str, str]:
    """Return user and password of a Basic header; empty strings otherwise."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return "", ""
    user, _, password = decoded.partition(":")
    return (user, password) if scheme.lower() == "basic" else ("", "")
