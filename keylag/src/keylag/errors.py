"""The root of our own errors."""


class KeylagError(Exception):
    """Something failed; the text says what, to what, and what to do next."""
