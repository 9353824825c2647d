"""Fill the Keystone of the containers with the small cloud, at their first start.

python -m keylag.containers http://keystone:5000/v3 /secrets/admin /secrets/service \
    /cloud/users.csv
"""

from pathlib import Path

import click

from keylag import cloud
from keylag.record import Admin


@click.command()
@click.argument("url")
@click.argument("password", type=click.Path(exists=True, path_type=Path))
@click.argument("service_password", type=click.Path(exists=True, path_type=Path))
@click.argument("users", type=click.Path(path_type=Path))
def main(url: str, password: Path, service_password: Path, users: Path) -> None:
    """Fill the Keystone at URL and write its users, unless that has been done.

    PASSWORD and SERVICE_PASSWORD are files with the administrator's and the
    service's, USERS the CSV to write.
    """
    if not users.exists():
        admin = Admin(url, password.read_text().strip())
        cloud.populate(admin, users, service_password.read_text().strip())


if __name__ == "__main__":
    main()
