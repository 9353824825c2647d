"""Keystone with fixes of docs/upstream, for the plans upstream-*.toml.

UPSTREAM_FIX has their names, separated by commas; without it Keystone is as installed.
Needs a checkout, which has the fixes.
"""

import os
import runpy
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "upstream" / "run.py"
NAMES = [name for name in os.environ.get("UPSTREAM_FIX", "").split(",") if name]

for name in NAMES:
    runpy.run_path(str(SCRIPT))["install"](name)

from keylag_otel.wsgi import application  # noqa: E402, F401 - after the fixes
