"""Locations of servers and traces, as users write them."""

from urllib.parse import unquote, urlsplit, urlunsplit


def without_credentials(location: str) -> str:
    """Return a location without credentials and query options, for display."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}".partition("?")[0]


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return a URL without credentials, and its user and password, if it has a user.

    Errors show the URL that is asked, so it must not hold the password.
    """
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    user, password = (unquote(one or "") for one in (parts.username, parts.password))
    return bare, (user, password) if user else None
