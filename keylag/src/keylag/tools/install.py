"""Make the tools that are missing or out of date, side by side and only once."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from keylag.state import locked, moved_in, write_private
from keylag.tools.base import Build, Tool, ToolError, tail

Report = Callable[[Tool, str], None]
"""Told what happens to a tool: "making", "made in 12 s", "found: /usr/bin/x"."""


def recorded(tool: Tool, folder: Path) -> Path | None:
    """Return where the tool is, if what is there is what its inputs ask for."""
    try:
        record = json.loads((folder / f"{tool.name}.json").read_text())
    except (OSError, ValueError):
        return None
    path = Path(record["path"])
    return path if record["stamp"] == tool.stamp() and path.exists() else None


def ready(tool: Tool, folder: Path) -> Path:
    """Return where the tool is; raises ToolError if the set-up has to run first."""
    path = recorded(tool, folder)
    if path is None:
        message = (
            f"{tool.name} ({tool.purpose}) is not set up in {folder}, "
            f"or what it is made of has changed. Run `{tool.command}` first."
        )
        raise ToolError(message)
    return path


@dataclass
class Installer:
    """Sets up a table of tools in one folder."""

    folder: Path
    report: Report
    builds: list[Build] = field(default_factory=list)

    def install(self, tools: Sequence[Tool]) -> None:
        """Set up what is missing; raises ToolError naming each one that failed."""
        with locked(self.folder / ".lock"):
            missing = [tool for tool in tools if not recorded(tool, self.folder)]
            if missing:
                self._install_all(missing)

    def _install_all(self, tools: Sequence[Tool]) -> None:
        with ThreadPoolExecutor(len(tools)) as pool:
            jobs = [pool.submit(self._install_one, tool) for tool in tools]
            try:
                wait(jobs)
            finally:
                # Jobs are under way here only after Ctrl-C: one that fails leaves
                # the others be, because what they make is kept.
                for build in self.builds:
                    build.cancel()
        failures = [job.exception() for job in jobs]
        texts = [str(failure) for failure in failures if failure]
        if texts:
            raise ToolError("\n\n".join(texts))

    def _install_one(self, tool: Tool) -> None:
        started = time.monotonic()
        path = next(filter(tool.accept, tool.candidates()), None)
        if path:
            self.report(tool, f"found: {path}")
        else:
            self.report(tool, "making")
            path = self._make(tool)
            self.report(tool, f"made in {time.monotonic() - started:.0f} s")
        record = json.dumps({"stamp": tool.stamp(), "path": str(path)})
        write_private(self.folder / f"{tool.name}.json", record)

    def _make(self, tool: Tool) -> Path:
        target = self.folder / tool.name
        log = self.folder / f"{tool.name}.log"
        log.unlink(missing_ok=True)
        with moved_in(target) as scratch:
            build = Build(folder=scratch, log=log, cache=self.folder)
            self.builds.append(build)
            try:
                tool.make(build)
            except (ToolError, OSError) as error:
                self.report(tool, "failed")
                raise self._explained(tool, build, error) from error
        return target / tool.program

    @staticmethod
    def _explained(tool: Tool, build: Build, error: Exception) -> ToolError:
        if build.cancelled:
            return ToolError("cancelled")
        return ToolError(
            f"{tool.name} could not be made: {error}\n"
            f"The end of {build.log}:\n{tail(build.log)}\n{tool.advice}"
        )
