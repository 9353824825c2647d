"""Locations of servers and traces."""

import pytest

from keylag.location import split_credentials, without_credentials


def test_displayed_location_has_no_credentials() -> None:
    assert without_credentials("redis://:p@ss@host:1/2?x=y") == "redis://host:1/2"
    assert without_credentials("trace.json") == "trace.json"


@pytest.mark.parametrize(
    ("url", "bare", "credentials"),
    [
        ("http://host:9090/prefix", "http://host:9090/prefix", None),
        ("http://me:p%40ss@host:9090", "http://host:9090", ("me", "p@ss")),
        ("https://me@[::1]:9090/", "https://[::1]:9090/", ("me", "")),
    ],
)
def test_credentials_of_a_url(
    url: str, bare: str, credentials: tuple[str, str] | None
) -> None:
    assert split_credentials(url) == (bare, credentials)
