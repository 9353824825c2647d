"""Instruments the Keystone of this mod_wsgi process; zz-keylag.conf loads it."""

import os
import socket
import sys

sys.path.insert(0, "/opt/keylag-otel/lib/python3/site-packages")
os.environ.update(
    OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318",
    OTEL_METRIC_EXPORT_INTERVAL="15000",
    OTEL_SERVICE_NAME="keystone",
    OTEL_RESOURCE_ATTRIBUTES=f"host.name={socket.gethostname()}",
)

from keylag_otel import KeystoneInstrumentor

KeystoneInstrumentor().instrument()
