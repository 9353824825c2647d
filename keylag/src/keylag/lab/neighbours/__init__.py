"""Keystone on a machine that databases of other tenants share.

`cassandra` and `ycsb` are a tenant's database and its client, `levers` the settings of
the machine that may help, `host` what the machine does, and `lab` all of it.
"""
