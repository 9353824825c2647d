"""Passwords that are expensive to check."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.changes.passwords import RehashedPasswords
from keylag.faults.model import POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, rounds: float) -> Iterator[Change]:
    yield RehashedPasswords(round(rounds))
    option = {"OS_IDENTITY__PASSWORD_HASH_ROUNDS": f"{rounds:.0f}"}
    yield Options(environment=option)


FAULT = Fault(
    id="H1",
    name="hash-cost",
    summary="Checking a password takes longer.",
    mechanism=(
        "All users' passwords are hashed with more bcrypt rounds, and `[identity] "
        "password_hash_rounds` is raised; Keystone's default is 12, and each one "
        "more doubles the time."
    ),
    slows=(POST,),
    strength=Strength(13, "bcrypt rounds", 4, 18),
    uses=uses(parts.PASSWORDS),
    changes=_changes,
)
