"""Follow a slow log and count its statements by fingerprint class."""
