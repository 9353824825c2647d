"""Programs of the system, and the Debian packages that they come from."""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from keylag.paths import DEPLOY, INSTALLED, SETUP_COMMAND
from keylag.tools.tool import ToolError

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of servers that are often missing from a user's PATH."""

PYTHON_MODULES = "/usr/lib/python3/dist-packages"
APACHE_MODULES = "/usr/lib/apache2/modules"
GALERA_LIBRARY = "/usr/lib/galera/libgalera_smm.so"

LABS_ADVICE = "Run `keylag setup --with labs` to install it."

Packages = Mapping[str, tuple[str, ...]]
"""Debian packages, each with the programs, or paths of files, that it is for."""

COMPILER: Packages = {
    "gcc": ("gcc",),
    "python3-dev": (f"{sysconfig.get_path('include')}/Python.h",),
}
"""For keylag-otel from a checkout; its wheels are compiled."""

PACKAGES: Packages = {
    "mariadb-server-core": ("mariadbd", "mariadb-install-db"),
    "mariadb-client-core": ("my_print_defaults",),
    "memcached": ("memcached",),
    "redis-server": ("redis-server",),
    "prometheus": ("prometheus",),
    "default-jre-headless": ("java",),
    **({} if INSTALLED else COMPILER),
}
WAN: Packages = {
    "iproute2": ("ip", "tc"),
    "iputils-ping": ("ping",),
    "iperf3": ("iperf3",),
}
"""For `keylag lab wan`."""

GALERA_WAN: Packages = {
    "galera-4": (GALERA_LIBRARY,),
    "haproxy": ("haproxy",),
    "rsync": ("rsync",),
    "mariadb-server": ("wsrep_sst_rsync",),
    "prometheus-mysqld-exporter": ("prometheus-mysqld-exporter",),
}
"""For `keylag lab galera-wan`."""

SWIFT_REGIONS: Packages = {
    "e2fsprogs": ("mkfs.ext4",),
    "mount": ("mount", "umount"),
}
"""For `keylag lab swift-regions`, which has a Galera cluster too."""

STORAGE: Packages = {
    **SWIFT_REGIONS,
    "fio": ("fio",),
    "nbdkit": ("nbdkit",),
    "libnbd-bin": ("nbdfuse",),
    "fuse3": ("fusermount3",),
    "btrfs-progs": ("mkfs.btrfs",),
}
"""For `keylag lab storage`."""

NEIGHBOURS: Packages = {
    "default-jdk-headless": ("javac",),
    "util-linux": ("ionice",),
}
"""For `keylag lab neighbours`."""

EXTRA_PACKAGES: Mapping[str, Packages] = {
    "tests": {
        "percona-toolkit": ("pt-query-digest",),
        "bindfs": ("bindfs",),
        "slapd": ("slapd",),
        "python3-ldap": (f"{PYTHON_MODULES}/ldap",),
        "python3-ldappool": (f"{PYTHON_MODULES}/ldappool",),
        "python3-mysqldb": (f"{PYTHON_MODULES}/MySQLdb",),
        "libapache2-mod-wsgi-py3": (f"{APACHE_MODULES}/mod_wsgi.so",),
        "docker-registry": ("docker-registry",),
        "galera-4": (GALERA_LIBRARY,),
        "skopeo": ("skopeo",),
        **WAN,
    },
    "labs": {**WAN, **GALERA_WAN, **SWIFT_REGIONS, **STORAGE, **NEIGHBOURS},
    "keystone-own": {
        "libldap2-dev": ("/usr/include/ldap.h",),
        "libsasl2-dev": ("/usr/include/sasl/sasl.h",),
    },
    "native": {"python3-dbg": ("python3-dbg",)},
    "pythons": {"mmdebstrap": ("mmdebstrap",), "bubblewrap": ("bwrap",)},
    "bench": {"percona-toolkit": ("pt-query-digest",)},
}
"""Packages that `keylag setup --with NAME` adds."""


def _find(name: str) -> str | None:
    if name.startswith("/"):
        return name if Path(name).exists() else None
    return shutil.which(name) or shutil.which(name, path=":".join(SYSTEM_FOLDERS))


def find_program(
    name: str, advice: str = f"Run `{SETUP_COMMAND}` to install it."
) -> Path:
    """Return the path of a program, or of a file by its path.

    Raises ToolError with the advice if it is missing.
    """
    found = _find(name)
    if found is None:
        message = f"{name} is not installed. {advice}"
        raise ToolError(message)
    return Path(found)


def missing_packages(packages: Packages) -> list[str]:
    """Return the packages of which a program or file is missing."""
    return [
        package for package, names in packages.items() if not all(map(_find, names))
    ]


def install_packages(extras: Iterable[str] = ()) -> None:
    """Install missing Debian packages; raises ToolError if that is not possible."""
    packages = dict(PACKAGES)
    for extra in extras:
        packages |= EXTRA_PACKAGES.get(extra, {})
    missing = missing_packages(packages)
    if not missing:
        return
    command = ["bash", str(DEPLOY / "packages.sh"), *missing]
    # Standard output may be for the result of `keylag demo --output json`.
    ended = subprocess.run(command, stdout=sys.stderr.fileno(), check=False)
    if ended.returncode != 0 or missing_packages(packages):
        names = " ".join(missing_packages(packages))
        message = f"Debian packages are missing: {names}. The reason is above."
        raise ToolError(message)
