"""Keylag measures where the time of OpenStack Keystone's token calls goes."""
