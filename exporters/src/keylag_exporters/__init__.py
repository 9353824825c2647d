"""Prometheus exporters for the database, proxy, cache and web server of Keystone."""
