"""One file per sub-command; each exposes `command`."""
