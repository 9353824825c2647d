"""What is watched: one table for each host library."""

from keylag_otel.seams import dogpile, keystone, osprofiler, sqlalchemy

SEAMS = keystone.SEAMS + sqlalchemy.SEAMS + dogpile.SEAMS + osprofiler.SEAMS
