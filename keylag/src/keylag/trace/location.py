"""Locations of servers and traces, as users write them."""


def without_credentials(location: str) -> str:
    """Return a location without credentials and query options, for display."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}".partition("?")[0]
