"""Reports of a breakdown: tables in the terminal, and an HTML page."""

from keylag.report.html import write_html
from keylag.report.terminal import render_terminal

__all__ = ["render_terminal", "write_html"]
