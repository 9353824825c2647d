"""A/B experiments: plans, the order of turns, statistics, running and reports.

`plan` and `arms` say what is compared; `schedule` when; `run` does it; `measures`,
`sequence`, `verdicts` and `analysis` are pure and judge what was measured.
"""
