"""What is watched: one table for each host library."""

from keylag_otel.seams import (
    dogpile,
    keystone,
    osprofiler,
    osprofiler_points,
    sqlalchemy,
)

SEAMS = (
    *keystone.SEAMS,
    *sqlalchemy.SEAMS,
    *dogpile.SEAMS,
    *osprofiler.SEAMS,
    *osprofiler_points.SEAMS,
)
