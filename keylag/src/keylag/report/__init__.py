"""A break-down for people: tables in the terminal, one page of HTML."""

from keylag.report.html import write_html
from keylag.report.terminal import render_terminal

__all__ = ["render_terminal", "write_html"]
