"""The PromQL of every dashboard: one table of named queries each.

A name in capitals is a placeholder of `config.PLACEHOLDERS`.
"""

from typing import Final

REPORTING: Final = "rate(http_server_request_duration_seconds_count{TOKENS}[RATE])"
"""Token calls: while there are some, a missing error means that there was none."""
