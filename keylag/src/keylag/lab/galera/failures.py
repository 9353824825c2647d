"""Loses nodes, a link or a site while token calls go on, and counts what that costs."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from keylag.jtl import Sample
from keylag.lab.galera.cluster import COUNT_EVENTS, Cluster
from keylag.lab.galera.donors import donors_since, log_sizes
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.measurement import keystone_at, read_calls, token_load
from keylag.lab.galera.node import AFTER_ALL_WRITES, JOIN_SECONDS, Node
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.load import keylag_on

CLIENTS: Final = 4
SHARES: Final = {"issue": 25, "validate": 50, "revoke": 25, "revoked": 0}
"""Of the kinds of calls, in per cent; with many revocations, which may be lost."""
BEFORE_SECONDS: Final = 12
"""Calls before the failure; JMeter needs some of them to start."""
LOST_SECONDS: Final = 20
"""From a failure until somebody mends it, usually."""
NOTICE_SECONDS: Final = 60
"""How long a site may take to notice that it is alone."""
AFTER_SECONDS: Final = 20
"""Calls after all nodes are back."""
LONGEST_SECONDS: Final = BEFORE_SECONDS + NOTICE_SECONDS + JOIN_SECONDS + AFTER_SECONDS
PRIMARY: Final = "Primary"
"""State of a node that has the quorum."""
NO_ANSWER: Final = "no answer"
REVOKE: Final = "DELETE "
"""Begins the label of revocations."""
NO_CONTENT: Final = "204"


@dataclass(frozen=True)
class Failure:
    """What is lost, and how it comes back."""

    summary: str
    begin: Callable[[GaleraWan], None]
    mend: Callable[[GaleraWan], None]
    lost_seconds: float = LOST_SECONDS
    """From its begin to its mending, or longer if the begin takes longer."""


@dataclass(frozen=True)
class Period:
    """How long something was lost, in Unix time."""

    begun: float
    mended: float
    """When somebody began to mend it."""


@dataclass(frozen=True)
class Healing:
    """How the cluster became whole."""

    seconds: float
    """From the start of the mending until all nodes are synced members."""
    donors: Mapping[str, str]
    """Which node gave each one that came back what it lacked, by their names."""


@dataclass(frozen=True)
class Answers:
    """How many calls ended while a failure lasted, before somebody mended it."""

    served: int
    failed: int

    @property
    def ended(self) -> int:
        """All of them."""
        return self.served + self.failed


@dataclass(frozen=True)
class Outcome:
    """What the clients of the first site saw of a failure."""

    failure: Failure
    calls: int
    """From the failure until the load ended."""
    codes: Mapping[str, int]
    """How many calls failed with each status code, or without an answer."""
    meanwhile: Mapping[str, Answers]
    """Calls that ended before the mending, by their method."""
    failing_seconds: float
    """From the first call that failed to the last one; 0 if none did."""
    longest_seconds: float
    """Of a call that succeeded or failed."""
    longest_gap_seconds: float
    """Without a successful call."""
    healing: Healing
    revoked: int
    """Revocations that Keystone confirmed."""
    missing: int
    """Those that a node does not have, at least."""
    hidden: int
    """How many more may be missing: revocations that failed, and calls on their way at
    the end, may be written all the same, and a node's events do not tell them apart."""

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(self.codes.values())


def _kill(*names: str) -> Callable[[GaleraWan], None]:
    def act(lab: GaleraWan) -> None:
        for node in lab.cluster().nodes:
            if node.name in names:
                node.kill()

    return act


def _start(*names: str, forget_data: bool = False) -> Callable[[GaleraWan], None]:
    def act(lab: GaleraWan) -> None:
        cluster = lab.cluster()
        for node in cluster.nodes:
            if node.name in names:
                if forget_data:
                    node.forget_data()
                node.start(cluster.nodes, cluster.options)

    return act


def silent_link(seconds: float) -> Failure:
    """Return a link that loses all packets for some seconds, and no node."""
    summary = f"the link is silent for {seconds:g} s"
    return Failure(summary, _cut, _join, seconds)


def _cut(lab: GaleraWan) -> None:
    lab.wan.change(replace(lab.link(), loss_ratio=1.0))


def _join(lab: GaleraWan) -> None:
    lab.wan.change(replace(lab.link(), loss_ratio=0.0))


def _unplug(name: str) -> Callable[[GaleraWan], None]:
    return lambda lab: lab.wan.unplug(name)


def _plug(name: str) -> Callable[[GaleraWan], None]:
    return lambda lab: lab.wan.plug(name)


SITE_B: Final = ("b1", "b2", "b3")


def _lose_site_and_go_on(lab: GaleraWan) -> None:
    """Kill site b, and tell site a to go on without it, as an operator would."""
    _kill(*SITE_B)(lab)
    first = lab.cluster().nodes[0]
    # Only nodes that have noticed the loss can begin anew.
    first.wait_until(lambda: _is_alone(first), NOTICE_SECONDS)
    first.wait_until(lambda: _begins_anew(first), NOTICE_SECONDS)


def _begins_anew(node: Node) -> bool:
    """Let the nodes that are left begin anew, and return whether they have.

    Galera ignores this while nodes exchange their states.
    """
    if _is_alone(node):
        node.query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
    return not _is_alone(node)


def _is_alone(node: Node) -> bool:
    return node.status().get("cluster_status", PRIMARY) != PRIMARY


FAILURES: Final[Mapping[str, Failure]] = {
    "far-node": Failure(
        "b1 is killed; it comes back by IST", _kill("b1"), _start("b1")
    ),
    "near-node": Failure(
        "a2 is killed; it comes back by IST", _kill("a2"), _start("a2")
    ),
    "copy": Failure(
        "b1 is killed; it comes back by SST (a copy of all data)",
        _kill("b1"),
        _start("b1", forget_data=True),
    ),
    "near-copy": Failure(
        "a2 is killed; it comes back by SST, with two segments from a node of its"
        " site, which accepts no writes meanwhile",
        _kill("a2"),
        _start("a2", forget_data=True),
    ),
    "near-partition": Failure(
        "a2 is cut from all others, and joined again", _unplug("a2"), _plug("a2")
    ),
    "link": Failure("the link is cut, and joined again", _cut, _join),
    "site": Failure(
        "site b is killed; its nodes start again", _kill(*SITE_B), _start(*SITE_B)
    ),
    "site-alone": Failure(
        "site b is killed; site a goes on by pc.bootstrap; site b starts again",
        _lose_site_and_go_on,
        _start(*SITE_B),
    ),
}
"""Of a cluster with three nodes at each site."""


def observe(lab: GaleraWan, failure: Failure, out: Path) -> Outcome:
    """Cause a failure under load, mend it, and return what it cost.

    It begins with 50 revocation events, and the next log-in of each user commits.  The
    load ends some seconds after all nodes are back.  `out` is a new folder for the
    samples.  Raises LabError, OSError or pymysql.MySQLError.
    """
    cluster = lab.cluster()
    cluster.limit_events(REVOCATION_EVENTS)
    cluster.forget_log_ins()
    sizes = log_sizes(cluster.nodes)
    events_before = _count_events(cluster)
    load = token_load(LONGEST_SECONDS, CLIENTS, SHARES)
    router = cluster.network.sites[0].router
    with load.sending(keylag_on(router), out, keystone_at(lab, router)):
        time.sleep(BEFORE_SECONDS)
        begun = time.time()
        failure.begin(lab)
        time.sleep(max(0.0, begun + failure.lost_seconds - time.time()))
        lost = Period(begun, time.time())
        heal_seconds = _heal(lab, failure)
        time.sleep(AFTER_SECONDS)
    healing = Healing(heal_seconds, donors_since(sizes))
    return judge(
        failure, read_calls(out), lost, healing, _gained(cluster, events_before)
    )


def _heal(lab: GaleraWan, failure: Failure) -> float:
    """Mend a failure, and return the seconds until all nodes are back."""
    begun = time.monotonic()
    failure.mend(lab)
    lab.cluster().wait_until_whole(begun + JOIN_SECONDS)
    return time.monotonic() - begun


def judge(
    failure: Failure,
    samples: list[Sample],
    lost: Period,
    healing: Healing,
    gained: float,
) -> Outcome:
    """Return the outcome of a failure.

    `gained` is how many revocations the node with fewest has written.
    """
    after = [one for one in samples if _end(one) > lost.begun]
    meanwhile = [one for one in after if _end(one) <= lost.mended]
    methods = {one.label.split(" ")[0] for one in after}
    served = sorted(_end(one) for one in after if one.success)
    failed = sorted(_end(one) for one in after if not one.success)
    moments = [lost.begun, *served, max(map(_end, after), default=lost.begun)]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    revocations = [one for one in samples if one.label.startswith(REVOKE)]
    revoked = sum(one.code == NO_CONTENT for one in revocations)
    return Outcome(
        failure,
        calls=len(after),
        codes=Counter(_code(one) for one in after if not one.success),
        meanwhile={one: _answers(meanwhile, one) for one in sorted(methods)},
        failing_seconds=failed[-1] - failed[0] if failed else 0.0,
        longest_seconds=max((one.elapsed_seconds for one in after), default=0.0),
        longest_gap_seconds=max(gaps),
        healing=healing,
        revoked=revoked,
        missing=max(0, round(revoked - gained)),
        hidden=CLIENTS + sum(not one.success for one in revocations),
    )


def _answers(calls: list[Sample], method: str) -> Answers:
    found = [one.success for one in calls if one.label.startswith(f"{method} ")]
    return Answers(served=sum(found), failed=len(found) - sum(found))


def _code(call: Sample) -> str:
    """Return the status code, or words if there was no answer."""
    return call.code if call.code.isdigit() else NO_ANSWER


def _end(call: Sample) -> float:
    """Return the Unix time at which a client had the response."""
    return call.start_seconds + call.elapsed_seconds


def _count_events(cluster: Cluster) -> dict[str, int]:
    return {
        one.name: one.query(AFTER_ALL_WRITES, COUNT_EVENTS)[0][0]
        for one in cluster.nodes
    }


def _gained(cluster: Cluster, before: Mapping[str, int]) -> float:
    """Return how many revocations the node with fewest has more than before.

    Keystone writes two events for each.
    """
    now = _count_events(cluster)
    return min(now[name] - before[name] for name in now) / 2
