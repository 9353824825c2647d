"""The web configuration file that Prometheus and its exporters share.

Understood are `tls_server_config` (cert_file, key_file, client_ca_file,
client_auth_type, min_version) and `basic_auth_users`. Any other key is an error:
a protection that was asked for and is not there must not go unnoticed.
"""

from __future__ import annotations

import base64
import binascii
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
# A hash to compare with for unknown users, so that they take as long as known ones.
_NOBODY = b"$2b$10$XQq43wrsxm3FQpTWvRWPzOpNJnLP4PsqcPLPEHXpmXdPDZfkDFiNi"
_MAX_KNOWN = 100


class WebConfigError(SettingsError):
    """The file cannot be used as it is; the message says why."""


@dataclass
class WebConfig:
    """How `/metrics` is protected; without a file not at all."""

    tls: ssl.SSLContext | None = None
    users: dict[str, bytes] = field(default_factory=dict)
    _salt: bytes = field(default_factory=lambda: os.urandom(16))
    _known: set[bytes] = field(default_factory=set)

    def allows(self, authorization: str) -> bool:
        """Tell whether an Authorization header's value is one of the users'."""
        if not self.users:
            return True
        user, password = _credentials(authorization)
        proof = hmac.digest(self._salt, f"{user}\0{password}".encode(), hashlib.sha256)
        if proof in self._known:
            return True
        hashed = self.users.get(user, _NOBODY)
        if not bcrypt.checkpw(password.encode()[:72], hashed) or user not in self.users:
            return False
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.add(proof)
        return True


def load(path: Path | None) -> WebConfig:
    """Read a web configuration file; without one nothing is protected."""
    if path is None:
        return WebConfig()
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        message = f"cannot read {path}: {error}"
        raise WebConfigError(message) from error
    _only(content, _KEYS, str(path))
    tls = content.get("tls_server_config")
    users = content.get("basic_auth_users") or {}
    return WebConfig(
        tls=_tls(tls, path.parent) if tls else None,
        users={str(name): _hash(str(name), value) for name, value in users.items()},
    )


def _only(section: Any, known: set[str], where: str) -> None:
    """Refuse anything but a mapping with known keys."""
    if not isinstance(section, dict):
        message = f"{where}: a mapping is expected"
        raise WebConfigError(message)
    unknown = sorted(set(section) - known)
    if unknown:
        message = f"{where}: not supported: {', '.join(map(str, unknown))}"
        raise WebConfigError(message)


def _hash(user: str, value: Any) -> bytes:
    """Return a user's bcrypt hash, checked by using it."""
    hashed = str(value).encode()
    try:
        bcrypt.checkpw(b"", hashed)
    except ValueError as error:
        message = f"basic_auth_users: the value for {user!r} is no bcrypt hash"
        raise WebConfigError(message) from error
    return hashed


def _tls(section: Any, folder: Path) -> ssl.SSLContext:
    """Return the context of a tls_server_config; paths are relative to the file."""
    _only(section, _TLS_KEYS, "tls_server_config")
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
    except (KeyError, OSError) as error:
        message = f"tls_server_config: {error}"
        raise WebConfigError(message) from error
    return context


def _credentials(authorization: str) -> tuple[str, str]:
    """Return user and password of a Basic header, empty where it is none."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    user, _, password = decoded.partition(":")
    return (user, password) if scheme.lower() == "basic" else ("", "")
