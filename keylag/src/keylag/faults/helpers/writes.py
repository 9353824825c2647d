"""Writes rows all the time, as other services of a cloud do in its database."""

from keylag.faults.helpers.database_client import repeat
from keylag.faults.helpers.host import Host


def run(host: Host, statement: str) -> None:
    """Run a statement again and again until the process ends."""
    repeat(host, lambda cursor: cursor.execute(statement))
