"""Redis, Elasticsearch, MongoDB: read by OSProfiler's own drivers."""

import osprofiler.drivers  # noqa: F401 - a driver is found once it is imported
from oslo_config import cfg
from osprofiler import exc, opts
from osprofiler.drivers.base import get_driver

from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import of_report
from keylag.trace.sources.place import in_words


def read(place: str, trace_id: str) -> Trace:
    """Read the trace of a connection string, as `[profiler]` in keystone.conf has it.

    Elasticsearch and MongoDB need their Python clients beside Keylag.
    """
    opts.set_defaults(cfg.CONF)
    try:
        report = get_driver(place, conf=cfg.CONF).get_report(trace_id)
    except exc.CommandError as error:
        raise TraceError(str(error)) from error
    except Exception as error:  # each driver's client has errors of its own
        message = f"{in_words(place)} cannot be read: {error}"
        raise TraceError(message) from error
    return of_report(report, trace_id, in_words(place))
