"""Hashes a password with another number of rounds than the default."""

import re

from keystone.common import password_hashing
from keystone.conf import CONF, configure

ROUNDS = 4
TOO_MANY_ROUNDS = 60000
"""The default of pbkdf2_sha512."""


def find_fault() -> str:
    """Return the rounds of a hash that differ from the configured ones."""
    configure()
    CONF([], project="keystone", default_config_files=[], default_config_dirs=[])
    CONF.set_override("password_hash_algorithm", "scrypt", "identity")
    CONF.set_override("password_hash_rounds", ROUNDS, "identity")
    hashed = password_hashing.hash_password("a password")
    if not password_hashing.check_password("a password", hashed):
        return "the hash does not match the password"
    (found,) = re.findall(r"ln=(\d+)", hashed)
    if int(found) != ROUNDS:
        return f"password_hash_rounds = {ROUNDS} makes a hash with ln={found}"
    CONF.set_override("password_hash_rounds", TOO_MANY_ROUNDS, "identity")
    try:
        password_hashing.hash_password("a password")
    except RuntimeError:
        return ""
    return f"password_hash_rounds = {TOO_MANY_ROUNDS} is accepted"
