"""What instrumentation costs a Keystone: measured, with intervals and verdicts.

`bench/inside` is what runs in each Keystone's process; this runs beside them.
"""
