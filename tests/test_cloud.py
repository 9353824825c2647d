"""The cloud that stacks are filled with is the one that is described."""

import csv

import pytest

from keylag import cloud
from keylag.stack import Stack
from keylag.users import COLUMNS

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def identity(stack: Stack) -> object:
    """Keystone's API, as the administrator."""
    return cloud.connect(stack.admin()).identity


def test_projects_users_and_groups(identity) -> None:
    """Ten projects and a hundred users, spread over three domains."""
    domains = {d.id for d in identity.domains() if d.name in cloud.DOMAINS}
    projects = [p for p in identity.projects() if p.domain_id in domains]
    users = [u for u in identity.users() if u.domain_id in domains]

    assert len(domains) == 3
    assert len(projects) == 10
    assert len(users) == 100
    assert {u.domain_id for u in users} == domains


def test_roles_come_directly_by_group_and_by_implication(identity) -> None:
    """Effective roles are more than those that somebody was given."""
    given = list(identity.role_assignments())
    effective = list(identity.role_assignments(effective=True))

    assert any(a.group for a in given)
    assert any(a.user for a in given)
    assert len(effective) > len(given)


def test_every_user_of_the_file_can_log_in_to_its_project(stack: Stack) -> None:
    """The file that the load plans read has a hundred different users."""
    with cloud.users_file(stack).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))

    assert len({(row["username"], row["user_domain"]) for row in rows}) == 100
    assert len({row["password"] for row in rows}) == 100
    assert tuple(rows[0]) == COLUMNS


def test_live_revocation_events(stack: Stack) -> None:
    """As many as asked for, and asking again revokes nothing more."""
    assert cloud.revoke_tokens(stack, 6) >= 6
    assert cloud.revoke_tokens(stack, 6) == cloud.revoke_tokens(stack, 0)
