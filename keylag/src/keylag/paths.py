"""Where Keylag's own files are: in a checkout, or in an installed package."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED_DATA = _PACKAGE / "data"
"""A wheel has its files there; a checkout has no such folder."""

INSTALLED = _PACKAGED_DATA.is_dir()
"""Whether this package came from a wheel; otherwise it is in a checkout."""

CHECKOUT = _PACKAGE.parents[2]
"""The checkout of a package that is installed in editable mode."""

DATA = _PACKAGED_DATA if INSTALLED else CHECKOUT
"""The folder of the files that pyproject.toml puts into the wheel."""

DEPLOY = DATA / "deploy"
"""Configuration that stacks and containers share."""

SETUP_COMMAND = "keylag setup" if INSTALLED else "./setup.sh"
"""The command that installs what is missing; it takes the options of `keylag setup`."""
