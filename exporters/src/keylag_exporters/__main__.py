"""`python -m keylag_exporters` is the command."""

from keylag_exporters.cli import main

main()
