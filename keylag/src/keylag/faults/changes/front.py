"""A relay at the address of Keystone, which moves to another port."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options

if TYPE_CHECKING:
    from keylag.faults.site import Site


@dataclass(frozen=True)
class RelayInFront(Options):
    """A relay that takes the published port as soon as Keystone has left it.

    It ends before Keystone returns.
    """

    relay: Mapping[str, Any] = field(default_factory=dict)

    @property
    def helper(self) -> Helper:
        """The relay's process."""
        return Helper(**self.relay)

    def apply(self, site: "Site") -> None:
        """Start the relay, then move Keystone, which is healthy through the relay."""
        self.helper.apply(site)
        super().apply(site)

    def undo(self, site: "Site") -> None:
        """Stop the relay, then move Keystone back."""
        self.helper.undo(site)
        super().undo(site)
