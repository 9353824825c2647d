"""Swift in two regions, with a Keystone at each.

`options` are its settings, `devices` the file systems, `rings` where objects belong,
`servers` the processes, and `lab` all of it.  `measurement` and `bench` measure it.
"""
