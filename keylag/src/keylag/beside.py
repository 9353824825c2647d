"""Work in a thread beside a block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Do work in a thread while the body runs; its event is set when the body ends.

    Waits until the work has ended.
    """
    ended = Event()
    thread = Thread(target=work, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
