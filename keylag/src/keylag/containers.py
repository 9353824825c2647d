"""Creates the sample cloud in the Keystone of the containers at their first start.

python -m keylag.containers http://keystone:5000/v3 /secrets/admin /secrets/service \
    /cloud/users.csv
"""

from pathlib import Path

import click

from keylag import sample_cloud
from keylag.stack_record import AdminCredentials


@click.command()
@click.argument("url")
@click.argument("password", type=click.Path(exists=True, path_type=Path))
@click.argument("service_password", type=click.Path(exists=True, path_type=Path))
@click.argument("users", type=click.Path(path_type=Path))
def main(url: str, password: Path, service_password: Path, users: Path) -> None:
    """Create the sample cloud in the Keystone at URL, once.

    PASSWORD and SERVICE_PASSWORD are files with the passwords of the administrator
    and of the service. USERS is the CSV file of users to write; if it exists, the
    command does nothing.
    """
    if not users.exists():
        admin = AdminCredentials(url, password.read_text().strip())
        sample_cloud.populate_keystone(
            admin, users, service_password.read_text().strip()
        )


if __name__ == "__main__":
    main()
