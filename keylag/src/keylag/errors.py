"""Base classes of Keylag's errors."""


class KeylagError(Exception):
    """An error for users; its text says what failed, where, and what to do next."""


class WrongUsageError(KeylagError):
    """Invalid options or input; nothing was started, and the exit code is 2."""


def root_cause(error: BaseException) -> str:
    """Return the message of the first error of a chain: "Connection refused"."""
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    return getattr(error, "strerror", None) or str(error)
