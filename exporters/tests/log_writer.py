"""A writer of slow-log events and a clock, for tests of the follower."""

from exporter_helpers import EVENT

ALL_BYTES = 1 << 30


class FakeClock:
    now = 1000.0

    def __call__(self):
        return self.now


class LogWriter:
    """Writes numbered events, each with a different statement."""

    def __init__(self, path):
        self.path = path
        self.count = 0

    def events(self, count):
        start, self.count = self.count, self.count + count
        return b"".join(
            EVENT.replace(b"SELECT 1", b"SELECT 'event %d'" % n)
            for n in range(start, self.count)
        )

    def write(self, count, path=None):
        with (path or self.path).open("ab") as file:
            file.write(self.events(count))


def count_events(follower):
    for _ in range(3):
        follower.poll(ALL_BYTES)
    follower._aggregator.flush()
    return follower._aggregator.event_count
