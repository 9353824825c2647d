"""What a load by an engine costs its controller, against a load without engines.

    .venv/bin/python bench/remote_load.py

Sends loads of two sizes to a fake Keystone, with and without one engine on 127.0.0.1.
CPU time is that of the large load, with the start of Java; bytes are those by which the
large load exceeds the small one.
"""

import argparse
import contextlib
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import psutil

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.append(str(CHECKOUT / "keylag" / "tests"))

from fake_keystone import FakeKeystone, password_of, running  # noqa: E402

from keylag import jmeter, jtl, load_plans  # noqa: E402
from keylag.jmeter_progress import Progress  # noqa: E402
from keylag.jmeter_run import LocalRun, RemoteRun  # noqa: E402
from keylag.load_runner import jmeter_home  # noqa: E402
from keylag.remote_engines import Access, Engine  # noqa: E402
from keylag_dev.engine_processes import (  # noqa: E402
    create_keystore,
    engine_running,
)

MODES = ("StrippedBatch", "Batch", "Standard")
THREADS = 5


@dataclass
class RemoteMode(RemoteRun):
    """Engines that send their samples in another mode."""

    mode: str = MODES[0]

    def options(self, public: Path, scratch: Path) -> list[str | Path]:
        """Add the mode."""
        return [*super().options(public, scratch), f"-Jmode={self.mode}"]


@dataclass(frozen=True)
class Cost:
    """What JMeter took for a load."""

    samples: int
    cpu_seconds: float
    read_bytes: int

    def minus(self, other: "Cost") -> "Cost":
        """Return the difference of two loads."""
        return Cost(
            self.samples - other.samples,
            self.cpu_seconds - other.cpu_seconds,
            self.read_bytes - other.read_bytes,
        )


def send(sender: LocalRun, keystone: FakeKeystone, users: Path, requests: int) -> Cost:
    """Send a load and return what the JMeter of this machine took."""
    own = {"users_file": str(users)} if not sender.engines else {}
    values = {
        **own,
        "port": str(keystone.server_address[1]),
        "threads": str(THREADS),
        "loops": str(requests // THREADS),
        "ramp_seconds": "0",
    }
    load = jmeter.Load(load_plans.find_plan("token-issue"), values)
    read = 0
    known = {child.pid for child in psutil.Process().children()}

    def note_bytes(_progress: Progress) -> None:
        nonlocal read
        for child in psutil.Process().children():
            if child.pid not in known:
                with contextlib.suppress(psutil.Error):
                    read = max(read, child.io_counters().read_chars)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        result = jmeter.run(
            load,
            home=jmeter_home(),
            out=Path(folder),
            on_progress=note_bytes,
            sender=sender,
        )
        samples, _ = jtl.read_samples(result.samples)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(len(samples), cpu, read)


@contextlib.contextmanager
def engine_of_bench(folder: Path, users: Path) -> Iterator[tuple[Engine, Access]]:
    """Run one engine."""
    keystore = create_keystore(folder)
    words = ("--keystore", keystore, "--users", users)
    with engine_running(folder, *words) as one:
        yield one.engine, Access(keystore)


def measure(requests: Sequence[int]) -> dict[str, tuple[Cost, Cost]]:
    """Return the costs of the small and of the large load, by who sends."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch, running() as keystone:
        folder = Path(scratch)
        users = folder / "users.csv"
        quoted = password_of("user1").replace('"', '""')
        header = "username,password,user_domain,project,project_domain"
        users.write_text(f'{header}\nuser1,"{quoted}",D,d,D\n')
        with engine_of_bench(folder, users) as (engine, access):
            senders: dict[str, Callable[[], LocalRun]] = {
                "local": LocalRun,
                **{
                    mode: partial(
                        RemoteMode, [engine], access, jmeter_home(), mode=mode
                    )
                    for mode in MODES
                },
            }
            for name, sender in senders.items():
                small, large = (
                    send(sender(), keystone, users, size) for size in requests
                )
                found[name] = (small, large)
    return found


def main() -> None:
    """Print a table of costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, nargs=2, default=[1000, 11_000])
    found = measure(parser.parse_args().requests)
    base = found["local"][1].cpu_seconds
    click.echo(f"Load averages: {os.getloadavg()}")
    click.echo("| sender | samples | CPU s | to local | bytes read for each sample |")
    click.echo("|---|---|---|---|---|")
    for name, (small, large) in found.items():
        more = large.minus(small)
        click.echo(
            f"| {name} | {large.samples} | {large.cpu_seconds:.1f} "
            f"| {large.cpu_seconds / base:.2f} | {more.read_bytes / more.samples:.0f} |"
        )


if __name__ == "__main__":
    main()
