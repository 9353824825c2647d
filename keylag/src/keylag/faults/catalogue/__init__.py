"""The catalogue: one module for each fault, with a `FAULT`."""
