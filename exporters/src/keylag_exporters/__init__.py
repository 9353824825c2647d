"""What the database, the proxy and the cache beside Keystone know of a token call."""
