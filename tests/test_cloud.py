"""The sample cloud of stacks."""

import csv

import pytest

from keylag import sample_cloud
from keylag.stack import Stack
from keylag.users_csv import COLUMNS

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def identity(stack: Stack) -> object:
    """Keystone's identity API as administrator."""
    return sample_cloud.connect(stack.admin()).identity


def test_cloud_has_its_domains_projects_and_users(identity) -> None:
    domains = {d.id for d in identity.domains() if d.name in sample_cloud.DOMAINS}
    projects = [p for p in identity.projects() if p.domain_id in domains]
    users = [u for u in identity.users() if u.domain_id in domains]

    assert len(domains) == 3
    assert len(projects) == 10
    assert len(users) == 100
    assert {u.domain_id for u in users} == domains


def test_roles_are_direct_by_group_and_implied(identity) -> None:
    given = list(identity.role_assignments())
    effective = list(identity.role_assignments(effective=True))

    assert any(a.group for a in given)
    assert any(a.user for a in given)
    assert len(effective) > len(given)


def test_users_file_has_unique_users_and_passwords(stack: Stack) -> None:
    with sample_cloud.users_file(stack).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))

    assert len({(row["username"], row["user_domain"]) for row in rows}) == 100
    assert len({row["password"] for row in rows}) == 100
    assert tuple(rows[0]) == COLUMNS


def test_revoke_tokens_is_idempotent(stack: Stack) -> None:
    assert sample_cloud.revoke_tokens(stack, 6) >= 6
    assert sample_cloud.revoke_tokens(stack, 6) == sample_cloud.revoke_tokens(stack, 0)
