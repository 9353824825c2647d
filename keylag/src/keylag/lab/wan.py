"""Two sites on one machine, joined by a link with a settable round trip.

Everything is in network namespaces whose names have the digest of the folder, so it is
found and removed after a crash too, and networks of several folders run side by side.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from keylag import processes
from keylag.lab import iproute, netem
from keylag.lab.iproute import LabError
from keylag.lab.link import Link
from keylag.lab.network import (
    HOST_INTERFACE,
    WAN_INTERFACE,
    Host,
    Network,
    Site,
    namespace_prefix,
)
from keylag.lab.relay import TUN
from keylag.lab.settings import (
    NETEM,
    RELAY,
    Settings,
    forget_settings,
    read_settings,
    write_settings,
)
from keylag.state import locked
from keylag.tools.tool import tail

RELAY_NAMESPACE: Final = "relay"
DEVICES: Final = ("wan-a", "wan-b")
"""TUN devices in the relay's namespace, before they are moved to the routers."""
START_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.02
GRACE_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Traffic:
    """What a router has sent to the other site."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class Wan:
    """The network of a folder."""

    folder: Path

    def up(self, hosts: int, link: Link) -> Settings:
        """Start the network, or change the link of one that runs.

        Raises LabError, and then leaves nothing that it started.
        """
        iproute.require_root()
        with self._lock():
            running = self.find()
            if running and self.is_complete():
                _check_hosts(running, hosts)
                return self._change(running, link)
            self._remove()
            try:
                return self._start(hosts, link)
            except BaseException:
                self._remove()
                raise

    def change(self, link: Link) -> Settings:
        """Change the link, also for connections that are open; raises LabError."""
        with self._lock():
            return self._change(self.require(), link)

    def down(self) -> list[str]:
        """Remove the network, and end what runs in it.

        Returns the names of the removed namespaces.  Raises LabError.
        """
        iproute.require_root()
        with self._lock():
            return self._remove()

    def find(self) -> Settings | None:
        """Return the settings of the network; None if none runs.  Raises LabError."""
        settings = read_settings(self.folder)
        return settings if settings and self._namespaces() else None

    def require(self) -> Settings:
        """Return the settings of a network that runs; raises LabError for none."""
        settings = self.find()
        if settings is None:
            message = f"No network runs in {self.folder}. Run `keylag lab wan up`."
            raise LabError(message)
        # Others do not see the processes of root, so the relay would seem to be gone.
        iproute.require_root()
        if not self.is_complete():
            message = (
                f"The network in {self.folder} is not complete: its relay has ended, "
                "or a namespace is gone. `keylag lab wan up` starts it again."
            )
            raise LabError(message)
        return settings

    def network(self) -> Network:
        """Return the names and addresses of the network that runs; raises LabError."""
        return Network(self.folder, self.require().hosts)

    def is_complete(self) -> bool:
        """Whether all namespaces exist, and the relay if there is one."""
        settings = read_settings(self.folder)
        if settings is None:
            return False
        network = Network(self.folder, settings.hosts)
        expected = {one.namespace for site in network.sites for one in site}
        alive = settings.mechanism == NETEM or bool(self.relay_pids())
        return alive and expected <= set(self._namespaces())

    def relay_pids(self) -> list[int]:
        """Return the processes of the relay: one, or none."""
        found = processes.find_processes(stack=self.folder, service=RELAY)
        return [one.process.pid for one in found]

    def traffic(self) -> dict[str, Traffic]:
        """Return what each site has sent to the other one, by its name."""
        return {site.router.name: _sent(site) for site in self.network().sites}

    def unplug(self, name: str) -> None:
        """Cut a host from its router; raises LabError."""
        router, host = self._port(name)
        iproute.configure(router.namespace, [f"link set {_port_name(host)} down"])

    def plug(self, name: str) -> None:
        """Join a host and its router again; raises LabError."""
        router, host = self._port(name)
        iproute.configure(router.namespace, _to_host(router, host))

    def _port(self, name: str) -> tuple[Host, Host]:
        """Return the router of a host, and the host; raises LabError."""
        for site in self.network().sites:
            for host in site.hosts:
                if host.name == name:
                    return site.router, host
        message = f"{name} is no host of this network."
        raise LabError(message)

    def _change(self, running: Settings, link: Link) -> Settings:
        changed = replace(running, link=link)
        write_settings(self.folder, changed)
        if running.mechanism == NETEM:
            for site in Network(self.folder, running.hosts).sites:
                netem.apply_link(site.router.namespace, link)
        for pid in self.relay_pids():
            os.kill(pid, signal.SIGHUP)
        return changed

    def _start(self, hosts: int, link: Link) -> Settings:
        network = Network(self.folder, hosts)
        first, second = network.sites
        for site in (first, second):
            _add_site(site)
        router = first.router.namespace
        mechanism = NETEM if netem.has_netem(router) else RELAY
        settings = Settings(hosts, mechanism, link)
        write_settings(self.folder, settings)
        if mechanism == NETEM:
            netem.connect(router, second.router.namespace)
        else:
            self._start_relay(network)
        for site, other in ((first, second), (second, first)):
            iproute.configure(site.router.namespace, _to_other_site(site, other))
            if mechanism == NETEM:
                netem.apply_link(site.router.namespace, link)
        return settings

    def _start_relay(self, network: Network) -> None:
        if not Path(TUN).exists():
            message = (
                f"This kernel has neither netem nor {TUN}, so no link can be made. "
                "Load a module: `modprobe sch_netem`, or `modprobe tun`."
            )
            raise LabError(message)
        namespace = namespace_prefix(self.folder) + RELAY_NAMESPACE
        iproute.add_namespace(namespace)
        program = [sys.executable, "-m", "keylag.lab.relay", str(self.folder), *DEVICES]
        log = self.folder / "relay.log"
        process = processes.start_server(
            iproute.command_in(namespace, program),
            {**os.environ, **processes.stack_variables(self.folder, RELAY)},
            log,
        )
        deadline = time.monotonic() + START_SECONDS
        while not _has_devices(namespace):
            if process.poll() is not None or time.monotonic() > deadline:
                message = f"The relay did not start. The end of {log}:\n{tail(log)}"
                raise LabError(message)
            time.sleep(POLL_SECONDS)
        for device, site in zip(DEVICES, network.sites, strict=True):
            move = f"link set {device} netns {site.router.namespace} name"
            iproute.configure(namespace, [f"{move} {WAN_INTERFACE}"])

    def _remove(self) -> list[str]:
        found = self._namespaces()
        # The relay outlives its namespace, if somebody else removes that.
        running = processes.find_processes(stack=self.folder, service=RELAY)
        running += [one for name in found for one in self._processes(name)]
        processes.stop_processes(running, GRACE_SECONDS)
        for name in found:
            iproute.remove_namespace(name)
        forget_settings(self.folder)
        return found

    def _processes(self, namespace: str) -> Iterator[processes.StackProcess]:
        """Yield what runs in a namespace of the network, which nobody else has."""
        for pid in iproute.find_pids(namespace):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                yield processes.StackProcess(self.folder, namespace, process)

    def _namespaces(self) -> list[str]:
        return iproute.list_namespaces(namespace_prefix(self.folder))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with locked(self.folder / ".lock", "Waiting for another command of this lab"):
            yield


def _check_hosts(running: Settings, hosts: int) -> None:
    if running.hosts != hosts:
        message = (
            f"A network with {running.hosts} hosts a site runs already. Run `keylag "
            "lab wan down` first, which ends what runs on them."
        )
        raise LabError(message)


def _add_site(site: Site) -> None:
    """Make the router and the hosts of a site."""
    router = site.router
    iproute.add_namespace(router.namespace)
    iproute.configure(router.namespace, [f"address add {router.address}/32 dev lo"])
    iproute.forward_packets(router.namespace)
    for host in site.hosts:
        inside = HOST_INTERFACE
        iproute.add_namespace(host.namespace)
        peer = f"peer name {inside} netns {host.namespace}"
        iproute.configure(
            router.namespace,
            [f"link add {_port_name(host)} type veth {peer}", *_to_host(router, host)],
        )
        iproute.configure(
            host.namespace,
            [
                f"address add {host.address}/32 dev {inside}",
                f"link set {inside} up",
                f"route add {router.address}/32 dev {inside}",
                f"route add default via {router.address} dev {inside}",
            ],
        )


def _port_name(host: Host) -> str:
    """Return the router's interface to a host."""
    return f"to-{host.name}"


def _to_host(router: Host, host: Host) -> list[str]:
    """Return lines of `ip` that lead from a router to a host of its site."""
    port = _port_name(host)
    route = f"{host.address}/32 dev {port} src {router.address}"
    return [f"link set {port} up", f"route replace {route}"]


def _to_other_site(site: Site, other: Site) -> list[str]:
    """Return lines of `ip` that lead from a router to the other site."""
    via = f"via {other.router.address} dev {WAN_INTERFACE} onlink"
    return [
        f"link set {WAN_INTERFACE} up",
        f"route add {other.network} {via} src {site.router.address}",
    ]


def _has_devices(namespace: str) -> bool:
    try:
        for device in DEVICES:
            iproute.run("ip", "-n", namespace, "link", "show", device)
    except LabError:
        return False
    return True


def _sent(site: Site) -> Traffic:
    counters = iproute.read_counters(site.router.namespace, WAN_INTERFACE)["tx"]
    return Traffic(counters["packets"], counters["bytes"])
