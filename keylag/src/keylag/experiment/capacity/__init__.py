"""The highest rate of requests that each arm of a plan holds.

`ramp` decides which rate is tried next, `open_load` tries one, `run` measures all arms,
and `result` and `report` say what was found.
"""
