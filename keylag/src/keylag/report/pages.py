"""Pages from templates: how each is filled in."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def templates() -> Environment:
    """Return the templates; what is put into a page of HTML is escaped."""
    return Environment(
        loader=PackageLoader("keylag.report"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
