"""Run `keylag-exporter` as `python -m keylag_exporters`."""

from keylag_exporters.cli import main

main()
