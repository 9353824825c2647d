"""The seams of Keystone's process: one table for each host."""

from keylag_otel.seams import dogpile, keystone, osprofiler, sqlalchemy

SEAMS = keystone.SEAMS + sqlalchemy.SEAMS + dogpile.SEAMS + osprofiler.SEAMS
