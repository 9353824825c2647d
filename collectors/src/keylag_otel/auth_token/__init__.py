"""Instrumentation of keystonemiddleware.auth_token in services."""
