"""The laboratory of storage: Keystone's database on a device of settable quality.

`options` has what is compared, `devices` the device, `lab` starts and stops everything,
`fio` measures the device, and `calls` Keystone's calls on it.
"""
