"""The PromQL of every dashboard: one table of named queries for each.

A word in capitals stands for the matchers or the range of `config.WORDS`.
"""
