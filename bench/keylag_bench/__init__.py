"""Measure the overhead of instrumentation in Keystone, with intervals and verdicts.

`bench/inside` runs in the process of each Keystone; this package controls them.
"""
