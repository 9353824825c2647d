"""The sub-commands of `keylag`; each module has a `command`."""
