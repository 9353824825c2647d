"""Reads traces in Redis, Elasticsearch and MongoDB with OSProfiler's drivers."""

import osprofiler.drivers  # noqa: F401 - registers the drivers
from oslo_config import cfg
from osprofiler import exc, opts
from osprofiler.drivers.base import get_driver

from keylag.location import without_credentials
from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import parse_report


def read(location: str, trace_id: str) -> Trace:
    """Read a trace from a `[profiler] connection_string`.

    Elasticsearch and MongoDB need their Python clients.  Raises TraceError if the trace
    is missing or the server cannot be read.
    """
    opts.set_defaults(cfg.CONF)
    try:
        report = get_driver(location, conf=cfg.CONF).get_report(trace_id)
    except exc.CommandError as error:
        raise TraceError(str(error)) from error
    except Exception as error:  # each driver has its own exceptions
        message = f"{without_credentials(location)} cannot be read: {error}"
        raise TraceError(message) from error
    return parse_report(report, trace_id, without_credentials(location))
