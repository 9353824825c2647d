"""Places as users write them."""


def in_words(place: str) -> str:
    """Return an address without the password and the options that may be in it."""
    scheme, separator, rest = place.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}".partition("?")[0]
