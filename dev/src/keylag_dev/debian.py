"""A minimal Debian of any release, in a folder, made by mmdebstrap."""

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
)
"""What compiles the collectors, and the servers and libraries of their tests."""

EXCLUDED_PATHS = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


@dataclass(frozen=True)
class DebianRelease:
    """A release of Debian, by its code name, and the Python to have from it."""

    release: str
    python: str

    @property
    def tool(self) -> Tool:
        """Return what the set-up makes of it."""
        return Tool(
            name=f"debian-{self.release}",
            purpose=f"Debian {self.release} with Python {self.python}",
            inputs=(INPUT_FILE,),
            program=f"usr/bin/python{self.python}",
            make=self._make,
            advice=(
                "It needs mmdebstrap, as root or with user namespaces, and Debian's "
                f"mirror, {MIRROR}."
            ),
            command="make test-pythons",
        )

    def _make(self, build: Build) -> None:
        archive = build.folder / "root.tar"
        python = (f"python{self.python}", f"python{self.python}-dev", "python3-venv")
        packages = ",".join([*PACKAGES, *python])
        mmdebstrap = (
            *("mmdebstrap", "--variant=essential", f"--include={packages}"),
            # A mirror may lag behind; what it has is signed all the same.
            '--aptopt=Acquire::Check-Valid-Until "false"',
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED_PATHS),
            # What a crash leaves half written is made again anyway.
            "--dpkgopt=force-unsafe-io",
            *(self.release, archive, MIRROR),
        )
        build.run(contained_command(mmdebstrap))
        # Unpacked so that whoever made it can delete it.
        unpack = ("tar", "--no-same-owner", "--exclude=./dev/*", "-xf")
        build.run([*unpack, str(archive)])
        archive.unlink()
