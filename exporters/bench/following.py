"""Measures the cost of following a slow log.

Writes events of measured token calls to a log at a steady rate, while `keylag-exporter
slow-log` follows it and is scraped every 5 seconds, and reads the CPU time of that
process.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

LOGS = sorted((Path(__file__).parent.parent / "tests" / "data").glob("*.log"))
STEP = 0.1
SCRAPE_SECONDS = 5


def events() -> list[bytes]:
    """Return the events of the recorded logs."""
    text = b"".join(log.read_bytes() for log in LOGS)
    return [b"# User@Host" + one for one in text.split(b"# User@Host")[1:]]


def scrape(port: int) -> dict[str, float]:
    """Return all samples, by their text."""
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def calls(found: dict[str, float]) -> float:
    """Return the number of counted statements."""
    return sum(
        v for k, v in found.items() if k.startswith("keylag_slow_log_calls_total{")
    )


def start(log: Path, state: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the exporter; return it and its port once it responds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "keylag_exporters", "slow-log", f"--file={log}"]
    command += [f"--state={state}", f"--listen=127.0.0.1:{port}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            scrape(port)
        except OSError:
            time.sleep(0.1)
        else:
            return process, port
    sys.exit("the exporter does not respond")


def write(log: Path, port: int, rate: int, seconds: int) -> int:
    """Write at a rate and scrape in between; return the number of events."""
    texts, written = events(), 0
    began = scraped = time.monotonic()
    with log.open("ab", buffering=0) as file:
        while (now := time.monotonic()) - began < seconds:
            due = int((now - began) * rate) - written
            file.write(b"".join(texts[(written + n) % len(texts)] for n in range(due)))
            written += due
            if now - scraped >= SCRAPE_SECONDS:
                scrape(port)
                scraped = now
            time.sleep(STEP)
    return written


def main() -> None:
    """Run the benchmark, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("out/bench/following.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "slow.log"
        log.touch()
        process, port = start(log, Path(folder) / "state")
        before, began = scrape(port), time.monotonic()
        written = write(log, port, options.rate, options.seconds)
        time.sleep(3)
        after, seconds = scrape(port), time.monotonic() - began
        process.terminate()
        process.wait()
    cpu = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    result = {
        "statements": written,
        "counted": calls(after),
        "statements_per_second": written / options.seconds,
        "cpu_share_of_one_core": cpu / seconds,
        "cpu_microseconds_per_statement": cpu / written * 1e6,
        "resident_bytes": after["process_resident_memory_bytes"],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))  # noqa: T201 -- the report


if __name__ == "__main__":
    main()
