"""Minimal Debian systems of any release, in a folder, built by mmdebstrap."""

from dataclasses import dataclass

from keylag.tools.tool import Build, Tool
from keylag_dev.sandbox import contained_command

MIRROR = "http://deb.debian.org/debian"
INPUT_FILE = "dev/src/keylag_dev/debian.py"
PACKAGES = (
    *("ca-certificates", "gcc", "libc6-dev"),
    *(
        "mariadb-server-core",
        "memcached",
        "redis-server",
        "slapd",
        "libapache2-mod-wsgi-py3",
    ),
    *("python3-ldap", "python3-ldappool", "python3-mysqldb"),
    "python3-venv",
)
"""The compiler for the collectors, and servers and libraries for their tests."""

# Java is not installed without the folders of /usr/share/man.
EXCLUDED_PATHS = ("/usr/share/doc/*", "/usr/share/locale/*")


@dataclass(frozen=True)
class DebianRelease:
    """A Debian release by code name, the version of its Python, and its packages."""

    release: str
    python: str
    packages: tuple[str, ...] = PACKAGES
    kind: str = "debian"
    """The first part of the folder's name."""

    @property
    def tool(self) -> Tool:
        """Return the tool that builds the system."""
        return Tool(
            name=f"{self.kind}-{self.release}",
            purpose=f"{self.release.title()} with Python {self.python}",
            inputs=(INPUT_FILE,),
            program=f"usr/bin/python{self.python}",
            make=self._make,
            advice=(
                "Install mmdebstrap, run as root or with user namespaces, and check "
                f"the connection to Debian's mirror, {MIRROR}."
            ),
            command="make test-pythons",
        )

    def _make(self, build: Build) -> None:
        archive = build.folder / "root.tar"
        python = (f"python{self.python}", f"python{self.python}-dev")
        packages = ",".join([*self.packages, *python])
        mmdebstrap = (
            *("mmdebstrap", "--variant=essential", f"--include={packages}"),
            # An outdated mirror is acceptable; its packages are still signed.
            '--aptopt=Acquire::Check-Valid-Until "false"',
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED_PATHS),
            # Skips fsync: an interrupted build starts again anyway.
            "--dpkgopt=force-unsafe-io",
            *(self.release, archive, MIRROR),
        )
        build.run(contained_command(mmdebstrap))
        # The current user owns the unpacked files, and can delete them.
        unpack = ("tar", "--no-same-owner", "--exclude=./dev/*", "-xf")
        build.run([*unpack, str(archive)])
        archive.unlink()
