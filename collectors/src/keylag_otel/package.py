"""Which releases of Keystone this package knows."""

_instruments = ("keystone >= 23.0.0",)
