"""Compares slow-log --once with pt-query-digest: same log, one core, same counts.

Generates a log from measured token calls with different ids, times and thread numbers,
runs both programs on it in turn, pinned to one core, and writes ratios, times and peak
memory as JSON. The ratio is of CPU time, user and system, since other load on the
machine affects it least.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
LOGS = sorted((HERE.parent / "tests" / "data").glob("*.log"))
COMMENT = b"/*keylag:route='%b /v3/auth/tokens',operation='%b'*/ "
# Runs per round: other load affects a short run more than a long one.
TIMES = {"ours": 3, "pt-query-digest": 1}
OPERATIONS = (b"authenticate", b"validate", b"roles", b"catalog", b"check_revocation")
_ID = re.compile(rb"(?<=')[0-9a-f]{32}(?=')")
_TIME = re.compile(rb"(?<=Query_time: )0\.0\d{5}")
_MOMENT = re.compile(rb"(?<=timestamp=)\d+")


def make(path: Path, megabytes: int, *, tagged: bool) -> None:
    """Write a log of at least `megabytes` * 10**6 bytes."""
    draw = random.Random(20261121)  # noqa: S311 -- a repeatable log, no secret
    originals = [log.read_bytes() for log in LOGS]
    with path.open("wb") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write(_vary(draw.choice(originals), draw, tagged=tagged))


def _vary(log: bytes, draw: random.Random, *, tagged: bool) -> bytes:
    """Return a log with different ids, times and timestamps."""
    ids: dict[bytes, bytes] = {}
    start = draw.randrange(1_795_000_000, 1_796_000_000)

    def other_id(found: re.Match[bytes]) -> bytes:
        return ids.setdefault(found[0], b"%032x" % draw.getrandbits(128))

    def other_time(_: re.Match[bytes]) -> bytes:
        return b"%.6f" % min(0.09, draw.lognormvariate(-9.3, 0.8))

    log = _MOMENT.sub(b"%d" % start, _TIME.sub(other_time, _ID.sub(other_id, log)))
    if not tagged:
        return log
    comment = COMMENT % (draw.choice((b"GET", b"POST")), draw.choice(OPERATIONS))
    return log.replace(b"\nSELECT ", b"\n" + comment + b"SELECT ")


def run(command: list[str], core: int) -> dict[str, float | bytes]:
    """Run a command on one core; return its seconds, peak memory and output."""
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 -- no threads here
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{command[0]} failed with {process.returncode}")
        out.seek(0)
        return {
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "wall_seconds": wall,
            "peak_bytes": used.ru_maxrss * 1024,
            "output": out.read(),
        }


def ours(output: bytes) -> dict[str, tuple[int, str]]:
    """Return {id: (count, seconds as text)} of our output."""
    return {
        one["id"]: (one["count"], f"{one['query_time_seconds_sum']:.6f}")
        for one in json.loads(output)["classes"]
    }


def theirs(output: bytes) -> dict[str, tuple[int, str]]:
    """Return the same of pt-query-digest's output."""
    return {
        "0x" + one["checksum"]: (
            one["query_count"],
            one["metrics"]["Query_time"]["sum"],
        )
        for one in json.loads(output.decode("utf-8", "replace"), strict=False)[
            "classes"
        ]
    }


def compare(log: Path, rounds: int, core: int) -> dict[str, object]:
    """Run both programs in turn; return medians, ratios and whether counts agree."""
    commands = {
        "ours": [sys.executable, "-m", "keylag_exporters", "slow-log",
                 "--once", str(log), "--output=json"],
        "pt-query-digest": ["pt-query-digest", "--no-version-check", "--limit=100%",
                            "--output=json", str(log)],
    }  # fmt: skip
    runs = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name] += [run(command, core) for _ in range(TIMES[name])]
    mine = ours(runs["ours"][-1]["output"])
    cpu, wall = medians(runs, "cpu_seconds"), medians(runs, "wall_seconds")
    size = log.stat().st_size
    return {
        "bytes": size,
        "events": sum(count for count, _ in mine.values()),
        "classes": len(mine),
        "identical": mine == theirs(runs["pt-query-digest"][-1]["output"]),
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "bytes_per_cpu_second": {name: size / one for name, one in cpu.items()},
        "ratio": cpu["pt-query-digest"] / cpu["ours"],
        "wall_ratio": wall["pt-query-digest"] / wall["ours"],
        "all_cpu_seconds": {
            name: [r["cpu_seconds"] for r in all_] for name, all_ in runs.items()
        },
        "peak_bytes": {
            name: max(r["peak_bytes"] for r in all_) for name, all_ in runs.items()
        },
    }


def medians(
    runs: dict[str, list[dict[str, float | bytes]]], what: str
) -> dict[str, float]:
    """Return the median of one figure by program."""
    return {
        name: statistics.median(r[what] for r in all_) for name, all_ in runs.items()
    }


def summary(name: str, one: dict[str, object]) -> str:
    """Return one line about one log."""
    peak = one["peak_bytes"]["ours"] / 1e6
    return (
        f"{name:<12} {one['bytes'] / 1e6:5.0f} MB  {one['ratio']:5.1f} times the speed"
        f" by processor time, {one['wall_ratio']:5.1f} by the clock"
        f"  {'same' if one['identical'] else 'OTHER'} counts  {peak:4.0f} MB of memory"
    )


def environment() -> dict[str, object]:
    """Return the environment that the figures depend on."""
    version = subprocess.run(
        ["pt-query-digest", "--version"], capture_output=True, check=True, text=True
    )
    return {
        "python": platform.python_version(),
        "pt-query-digest": version.stdout.split()[-1],
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def main() -> None:
    """Generate the logs, compare, write and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("out/bench/slow_log.json"))
    options = parser.parse_args()
    if shutil.which("pt-query-digest") is None:
        sys.exit("pt-query-digest is not installed (Debian: percona-toolkit)")
    result: dict[str, dict[str, object]] = {"environment": environment()}
    with tempfile.TemporaryDirectory() as folder:
        for name, share, tagged in (
            ("plain", 1.0, False),
            ("plain_tenth", 0.1, False),
            ("tagged", 1.0, True),
        ):
            log = Path(folder) / f"{name}.log"
            make(log, int(options.megabytes * share), tagged=tagged)
            result[name] = compare(log, options.rounds, options.core)
            print(summary(name, result[name]), flush=True)  # noqa: T201 -- the report
            log.unlink()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    if not all(one.get("identical", True) for one in result.values()):
        sys.exit("the counts differ from those of pt-query-digest")


if __name__ == "__main__":
    main()
