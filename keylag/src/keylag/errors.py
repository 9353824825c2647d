"""The root of our own errors."""


class KeylagError(Exception):
    """Something failed; the text says what, to what, and what to do next."""


class WrongUsageError(KeylagError):
    """What was asked for cannot be: nothing was started, and the exit code is 2."""


def root_cause(error: BaseException) -> str:
    """Return what a chain of errors began with, such as "Connection refused"."""
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    return getattr(error, "strerror", None) or str(error)
