"""A Galera cluster over two sites, with a Keystone at each.

Each site has three database nodes, HAProxy before them, memcached and Keystone.
`node` is one database server, `cluster` all six, `site` what runs on a router, and
`lab` all of it.
"""
