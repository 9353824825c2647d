"""Other options of the stack: Keystone, memcached or the sample service restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keylag.services.base import StackOptions

if TYPE_CHECKING:
    from keylag.faults.site import Site


@dataclass(frozen=True)
class Options:
    """Options that replace those of the stack; empty ones stay as they are."""

    cache: str = ""
    processes: int = 0
    threads: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    memcached: Mapping[str, str] = field(default_factory=dict)
    service: Mapping[str, str] = field(default_factory=dict)
    second_node: Mapping[str, str] = field(default_factory=dict)

    def on_top_of(self, options: StackOptions) -> StackOptions:
        """Return the options of a stack with these on top."""
        return replace(
            options,
            cache=self.cache or options.cache,
            processes=self.processes or options.processes,
            threads=self.threads or options.threads,
            environment={**options.environment, **self.environment},
            memcached={**options.memcached, **self.memcached},
            service={**options.service, **self.service},
            second_node={**options.second_node, **self.second_node},
        )

    def apply(self, site: "Site") -> None:
        """Restart what has other options now."""
        site.apply_options()

    def undo(self, site: "Site") -> None:
        """Restart it with the options of the faults that remain."""
        site.apply_options()
