"""A/B experiments: compare configurations of Keystone under the same load.

`plan`, `settings` and `plan_parser` describe and read a plan; `schedule` orders the
rounds; `run` runs them with an executor; `measures`, `ratios`, `estimates`,
`planned_looks`, `verdicts`, `arm_pair` and `analysis` are pure functions that judge the
samples; `noise_check` forecasts the rest of a run from its first rounds; `result`,
`messages`, `charts` and `report` present the result.
"""
