"""The slow-log source: follow a slow log and count statements by fingerprint."""
