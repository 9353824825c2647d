"""Endpoints in Keystone's catalog, as rows of its database."""

from typing import Final

from keylag.faults.changes.sql import Sql

ID: Final = "keylag-fault-"
"""How the ids of the rows begin."""
ENDPOINTS_PER_SERVICE: Final = 10
INSERT_SERVICES: Final = """\
INSERT INTO service (id, type, enabled, extra)
SELECT CONCAT('{id}', seq), CONCAT('fault-', seq), 1,
  CONCAT('{{"name": "fault-', seq, '"}}')
FROM seq_1_to_{number}"""
INSERT_ENDPOINTS: Final = """\
INSERT INTO endpoint (id, interface, service_id, url, extra, enabled, region_id)
SELECT CONCAT('{id}', seq), ELT(1 + seq MOD 3, 'public', 'internal', 'admin'),
  CONCAT('{id}', 1 + seq MOD {services}),
  RPAD(CONCAT('http://fault.example.org/', seq, '/'), {url_bytes}, 'x'),
  '{{}}', 1, 'RegionOne'
FROM seq_1_to_{number}"""


def endpoints(number: int, url_bytes: int) -> Sql:
    """Return a change that adds endpoints of new services, with URLs of a length."""
    services = max(1, number // ENDPOINTS_PER_SERVICE)
    return Sql(
        [
            INSERT_SERVICES.format(id=ID, number=services),
            INSERT_ENDPOINTS.format(
                id=ID, number=number, services=services, url_bytes=url_bytes
            ),
        ],
        [
            f"DELETE FROM endpoint WHERE id LIKE '{ID}%'",
            f"DELETE FROM service WHERE id LIKE '{ID}%'",
        ],
    )
