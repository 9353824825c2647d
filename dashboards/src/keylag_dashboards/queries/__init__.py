"""The PromQL of every dashboard: one table of named queries each.

A name in capitals is a placeholder of `config.PLACEHOLDERS`.
"""
