"""Programs of faults that run beside the stack until the fault is taken back."""

from typing import Final

READY: Final = "ready"
"""What a helper prints once it does its work."""
