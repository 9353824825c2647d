"""What holds for all tests: Ctrl-C interrupts, however they were started."""

import signal

import pytest

# A shell starts what is in its background with Ctrl-C ignored, and so would be
# the tests that send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the package whose coverage was measured: suites share their output."""
    plugin = config.pluginmanager.getplugin("_cov")
    if plugin and plugin.cov_total is not None:
        packages = ", ".join(plugin.options.cov_source)
        terminalreporter.write_line(
            f"Coverage of {packages}: {plugin.cov_total:.1f} %, "
            f"required {plugin.options.cov_fail_under} %"
        )
