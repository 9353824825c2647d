"""Assigns statements to parts of Keystone by their table names."""

from __future__ import annotations

import re

# (table class, tables), most specific first: a statement on several tables belongs to
# the first class with one of them. These are the tables of Keystone 30; older releases
# have a subset.
TABLE_CLASSES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (name, frozenset(tables.split()))
    for name, tables in (
        ("revocation_event", "revocation_event"),
        (
            "user+password",
            "user local_user nonlocal_user federated_user password user_option",
        ),
        ("assignment", "assignment system_assignment"),
        (
            "application_credential",
            (
                "application_credential application_credential_role"
                " application_credential_access_rule access_rule"
            ),
        ),
        ("trust", "trust trust_role"),
        ("group", "group user_group_membership expiring_user_group_membership"),
        ("role", "role role_option implied_role"),
        (
            "catalog",
            (
                "endpoint service region endpoint_group project_endpoint"
                " project_endpoint_group policy_association"
            ),
        ),
        ("project", "project project_tag project_option"),
        ("id_mapping", "id_mapping"),
        (
            "federation",
            (
                "identity_provider idp_remote_ids federation_protocol mapping"
                " service_provider"
            ),
        ),
        ("credential", "credential"),
        ("oauth1", "consumer request_token access_token"),
        ("limit", "limit registered_limit"),
        ("policy", "policy"),
        ("domain_config", "whitelisted_config sensitive_config config_register"),
    )
)

# (class, pattern at the start of its fingerprints), for statements without a table
_PREFIX_PATTERNS = (
    (
        "transaction",
        re.compile(rb"(?:start transaction|begin|commit|rollback|(?:release )?savep)"),
    ),
    ("session", re.compile(rb"(?:set |use |show |select @@|select (?:database|vers))")),
    ("administrator", re.compile(rb"administrator command: ")),
)
_TABLE = re.compile(
    rb"\b(?:from|join|into|update|table)\s++\(*+\s*+(?:`?[a-z0-9_?$]+`?\.)?`?([a-z0-9_?]+)`?"
    rb"((?:\s*,\s*`?[a-z0-9_?]+`?)*)"
)
_NAME = re.compile(rb"[a-z0-9_?]+")


def table_class(fingerprint: bytes) -> str:
    """Return the part of Keystone that a fingerprint belongs to, or `other`."""
    names = _table_names(fingerprint)
    for name, tables in TABLE_CLASSES:
        if not tables.isdisjoint(names):
            return name
    for name, pattern in _PREFIX_PATTERNS:
        if pattern.match(fingerprint):
            return name
    return "other"


def _table_names(fingerprint: bytes) -> set[str]:
    """Return the names after FROM, JOIN, INTO, UPDATE, including comma lists."""
    return {
        name.decode()
        for first, more in _TABLE.findall(fingerprint)
        for name in (first, *_NAME.findall(more))
    }
