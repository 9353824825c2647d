"""Which Pythons, and releases of Keystone and keystonemiddleware, are known."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

#: Any, also a pre-release: what a release does not have is skipped seam by seam.
_instruments = ("keystone >= 0a0",)
_instruments_auth_token = ("keystonemiddleware >= 0a0",)

#: The major versions that the tests are run against, from Zed on.
TRIED = range(22, 31)

#: The Pythons that the tests are run on, by `make test-pythons`.
TESTED_PYTHONS = ("3.11", "3.13", "3.14")


def untried_keystone() -> str | None:
    """Return Keystone's version if there is one, and it is none of those tried."""
    try:
        installed = version("keystone")
    except PackageNotFoundError:
        return None
    major = installed.partition(".")[0]
    return None if major.isdigit() and int(major) in TRIED else installed
