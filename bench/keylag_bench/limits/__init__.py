"""The least time of a token call, and what Keystone takes: see bench/limits.py."""
