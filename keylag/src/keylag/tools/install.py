"""Builds missing and outdated tools, in parallel."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from keylag.state import locked, replace_folder, write_private
from keylag.tools.tool import Build, Tool, ToolError, tail

ReportEvent = Callable[[Tool, str], None]
"""Receives the events of a tool: "building", "built in 12 s", "found: /usr/bin/x"."""
ShowBuild = Callable[[Tool], AbstractContextManager[object]]
"""Shows that the build of a tool goes on."""


def installed_path(tool: Tool, folder: Path) -> Path | None:
    """Return the path of a tool; None if it is missing or outdated."""
    try:
        record = json.loads((folder / f"{tool.name}.json").read_text())
    except (OSError, ValueError):
        return None
    path = Path(record["path"])
    return path if record["stamp"] == tool.inputs_digest() and path.exists() else None


def require_tool(tool: Tool, folder: Path) -> Path:
    """Return the path of a tool; raises ToolError if it is missing or outdated."""
    path = installed_path(tool, folder)
    if path is None:
        message = (
            f"{tool.name} ({tool.purpose}) in {folder} is missing or outdated. "
            f"Run `{tool.command}` first."
        )
        raise ToolError(message)
    return path


@dataclass
class Installer:
    """Installs tools in one folder, and reports and shows the progress."""

    folder: Path
    report_event: ReportEvent
    show_build: ShowBuild = lambda _: nullcontext()
    builds: list[Build] = field(default_factory=list)

    def install(self, tools: Sequence[Tool]) -> None:
        """Install missing tools; raises ToolError with the reason of each failure."""
        with locked(self.folder / ".lock"):
            missing = [tool for tool in tools if not installed_path(tool, self.folder)]
            if missing:
                self._install_all(missing)

    def _install_all(self, tools: Sequence[Tool]) -> None:
        with ThreadPoolExecutor(len(tools)) as pool:
            jobs = [pool.submit(self._install_one, tool) for tool in tools]
            try:
                wait(jobs)
            finally:
                # Cancels after Ctrl-C only: `wait` returns when all jobs have ended,
                # so one failure leaves the other builds intact.
                for build in self.builds:
                    build.cancel()
        failures = [job.exception() for job in jobs]
        texts = [str(failure) for failure in failures if failure]
        if texts:
            raise ToolError("\n\n".join(texts))

    def _install_one(self, tool: Tool) -> None:
        started = time.monotonic()
        path = next(filter(tool.accept, tool.programs_on_path()), None)
        if path:
            self.report_event(tool, f"found: {path}")
        else:
            self.report_event(tool, "building")
            with self.show_build(tool):
                path = self._make(tool)
            self.report_event(tool, f"built in {time.monotonic() - started:.0f} s")
        record = json.dumps({"stamp": tool.inputs_digest(), "path": str(path)})
        write_private(self.folder / f"{tool.name}.json", record)

    def _make(self, tool: Tool) -> Path:
        target = self.folder / tool.name
        log = self.folder / f"{tool.name}.log"
        log.unlink(missing_ok=True)
        with replace_folder(target) as scratch:
            build = Build(folder=scratch, log=log, cache=self.folder)
            self.builds.append(build)
            try:
                tool.make(build)
            except (ToolError, OSError) as error:
                self.report_event(tool, "failed")
                raise self._build_error(tool, build, error) from error
        return target / tool.program

    @staticmethod
    def _build_error(tool: Tool, build: Build, error: Exception) -> ToolError:
        if build.cancelled:
            return ToolError("cancelled")
        return ToolError(
            f"The build of {tool.name} failed: {error}\n"
            f"The end of {build.log}:\n{tail(build.log)}\n{tool.advice}"
        )
