"""The files of an LDAP directory with the users of the stack."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from keylag.faults.model import FaultError
from keylag.faults.probe import read_users
from keylag.stack_info import StackInfo
from keylag.state import write_private
from keylag.tools import find_program
from keylag.tools.programs import PYTHON_MODULES

if TYPE_CHECKING:
    from keylag.faults.site import Site

FOLDER: Final = "fault-directory"
PYTHON_LIBRARIES: Final = (
    *("ldap", "_ldap*.so", "ldapurl.py", "ldif.py", "ldappool"),
    *("pyasn1", "pyasn1_modules"),
)
"""Debian's libraries with which Keystone reads a directory."""
SUFFIX: Final = "dc=keylag,dc=example"
ROOT: Final = f"cn=root,{SUFFIX}"
SCHEMAS: Final = Path("/etc/ldap/schema")
SERVER: Final = """\
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
database mdb
suffix "{suffix}"
rootdn "{root}"
rootpw {password}
directory {folder}/data
"""
TREE: Final = """\
dn: {suffix}
objectClass: dcObject
objectClass: organization
dc: keylag
o: Keylag

"""
UNIT: Final = """\
dn: ou={name},{suffix}
objectClass: organizationalUnit
ou: {name}

"""
PERSON: Final = """\
dn: uid={name},ou={domain},{suffix}
objectClass: inetOrgPerson
uid: {name}
cn: {name}
sn: {name}
userPassword: {password}

"""
DOMAIN: Final = """\
[identity]
driver = ldap

[ldap]
url = ldap://{address}
user = {root}
password = {password}
suffix = {suffix}
user_tree_dn = ou={domain},{suffix}
group_tree_dn = ou={domain},{suffix}
user_objectclass = inetOrgPerson
user_id_attribute = uid
user_name_attribute = uid
connection_timeout = 30
"""


@dataclass(frozen=True)
class Directory:
    """Data of slapd, Keystone's options for each domain, and python-ldap.

    All of it is in a folder of the stack's own.
    """

    address: str
    """Where Keystone reaches the directory."""

    def apply(self, site: "Site") -> None:
        """Write the files; raises ToolError or FaultError without slapd."""
        folder = site.folder / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "data").mkdir(parents=True, mode=0o700)
        self._add_libraries(site, folder / "python")
        _write_tree(site, folder)
        self._write_options(site, folder / "domains")

    def undo(self, site: "Site") -> None:
        """Delete the files."""
        shutil.rmtree(site.folder / FOLDER, ignore_errors=True)

    def _add_libraries(self, site: "Site", folder: Path) -> None:
        folder.mkdir()
        for pattern in PYTHON_LIBRARIES:
            for found in Path(PYTHON_MODULES).glob(pattern):
                (folder / found.name).symlink_to(found)
        ended = subprocess.run(
            [site.stack.tools.keystone / "bin" / "python", "-c", "import ldappool"],
            env={"PYTHONPATH": str(folder)},
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            message = (
                "Keystone's Python cannot import python-ldap. Install Debian's "
                "packages python3-ldap, python3-ldappool and slapd; Python has to be "
                "Debian's version."
            )
            raise FaultError(message)

    def _write_options(self, site: "Site", folder: Path) -> None:
        folder.mkdir()
        for domain in domains(site):
            text = DOMAIN.format(
                address=self.address,
                root=ROOT,
                suffix=SUFFIX,
                domain=domain,
                password=_password(site),
            )
            write_private(folder / f"keystone.{domain}.conf", text)


def domains(site: "Site") -> list[str]:
    """Return the names of the domains of the stack's users."""
    return sorted({row["user_domain"] for row in read_users(StackInfo(site.folder))})


def _password(site: "Site") -> str:
    # The directory is as private as the users' file.
    return site.secrets.admin


def _write_tree(site: "Site", folder: Path) -> None:
    advice = "Install Debian's package slapd."
    # A copy, because AppArmor lets Debian's own only into Debian's own folders.
    own = shutil.copy(find_program("slapd", advice), folder / "slapd")
    (folder / "slapadd").symlink_to(own)
    users = read_users(StackInfo(site.folder))
    people = (
        PERSON.format(
            name=row["username"],
            domain=row["user_domain"],
            suffix=SUFFIX,
            password=row["password"],
        )
        for row in users
    )
    units = (UNIT.format(name=name, suffix=SUFFIX) for name in domains(site))
    text = "".join([TREE.format(suffix=SUFFIX), *units, *people])
    write_private(folder / "tree.ldif", text)
    server = SERVER.format(
        schemas=SCHEMAS,
        folder=folder,
        suffix=SUFFIX,
        root=ROOT,
        password=_password(site),
    )
    write_private(folder / "slapd.conf", server)
    ended = subprocess.run(
        [
            *(folder / "slapadd", "-f", folder / "slapd.conf"),
            *("-l", folder / "tree.ldif"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        message = f"The directory could not be filled:\n{ended.stderr}"
        raise FaultError(message)
