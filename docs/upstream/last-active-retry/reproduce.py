"""Refuses the first commit, as Galera does if another node has changed the same row."""

import tempfile

import keystone.federation.backends.sql  # noqa: F401 - users refer to its tables
from keystone.common import sql
from keystone.conf import CONF, configure
from keystone.identity.backends.sql_model import User
from keystone.identity.shadow_backends.sql import ShadowUsers
from oslo_db import options
from oslo_db.exception import DBDeadlock
from sqlalchemy import event

ID = "a-user"


def find_fault() -> str:
    """Return what happens to a log-in whose commit is refused once."""
    configure()
    CONF([], project="keystone", default_config_files=[], default_config_dirs=[])
    with tempfile.TemporaryDirectory() as folder:
        connection = f"sqlite:///{folder}/keystone.sqlite"
        options.set_defaults(CONF, connection=connection)
        with sql.session_for_write() as session:
            engine = session.get_bind()
            User.metadata.create_all(engine)
            session.add(User(id=ID, domain_id="default", enabled=True))
        refuse_once(engine)
        try:
            ShadowUsers().set_last_active_at(ID)
        except DBDeadlock:
            return "the log-in fails with DBDeadlock, and the client gets no answer"
        with sql.session_for_read() as session:
            if not session.get(User, ID).last_active_at:
                return "the user has no day of the last log-in"
    return ""


def refuse_once(engine: object) -> None:
    """Let the next commit of an engine fail."""
    refused = []

    def refuse(_: object) -> None:
        if not refused:
            refused.append(True)
            raise DBDeadlock

    event.listen(engine, "commit", refuse)
