"""Laboratories: networks and clusters on one machine, in network namespaces.

A site is a router with hosts behind it, each a network namespace of its own.  `link`
has the settings of the link between two sites, `wan` starts and removes the network,
and `relay` delays the packets of a link where the kernel cannot.
"""
