"""Supported and tested releases of Python, Keystone and keystonemiddleware."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

#: Any release, including pre-releases: seams that a release lacks are skipped.
_instruments = ("keystone >= 0a0",)
_instruments_auth_token = ("keystonemiddleware >= 0a0",)

#: The major versions of Keystone that the tests cover, from Zed on.
TESTED_KEYSTONES = range(22, 31)

#: The Pythons that `make test-pythons` covers.
TESTED_PYTHONS = ("3.11", "3.13", "3.14")


def untested_keystone() -> str | None:
    """Return the version of an installed Keystone that is not tested, else None."""
    try:
        installed = version("keystone")
    except PackageNotFoundError:
        return None
    major = installed.partition(".")[0]
    return None if major.isdigit() and int(major) in TESTED_KEYSTONES else installed
