"""Keystone with the fix UPSTREAM_FIX of docs/upstream, for the plans upstream-*.toml.

Without the variable it is as installed.  Needs a checkout, which has the fixes.
"""

import os
import runpy
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "upstream" / "run.py"
NAME = os.environ.get("UPSTREAM_FIX", "")

if NAME:
    script = runpy.run_path(str(SCRIPT))
    fix = script["FIXES"][NAME]
    with tempfile.TemporaryDirectory() as folder:
        fixed = script["write_fixed"](NAME, fix, Path(folder))
        script["load"](fix.module, fixed)

from keylag_otel.wsgi import application  # noqa: E402, F401 - after the fix
