"""The servers of a stack, in the order they start: one file each, one shape."""

from keylag.services import (
    exporters,
    grafana,
    keystone,
    mariadb,
    memcached,
    otel_collector,
    prometheus,
)
from keylag.services.base import Service

SERVICES: tuple[Service, ...] = (
    mariadb.SERVICE,
    memcached.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    keystone.SERVICE,
    exporters.SERVICE,
    *((grafana.SERVICE,) if grafana.is_there() else ()),
)
