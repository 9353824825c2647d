"""The Jinja environment of all report templates."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def jinja_environment() -> Environment:
    """Return the environment; templates named *.html.j2 escape what is inserted."""
    return Environment(
        loader=PackageLoader("keylag.report"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
