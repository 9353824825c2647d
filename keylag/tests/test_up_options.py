"""Options of `keylag up`, and selection of services."""

from dataclasses import replace
from pathlib import Path

import pytest

from keylag.commands.up import merge_options
from keylag.services import EXTRA_SERVICES, OPTIONAL_SERVICES, SERVICES, select_services
from keylag.services.base import StackOptions

BEFORE = StackOptions(cache="memcache_pool", processes=4, extras=("proxysql",))


def test_previous_options_are_the_default() -> None:
    assert merge_options(BEFORE, (), cache=None, processes=None) == BEFORE


def test_given_options_replace_previous_ones() -> None:
    merged = merge_options(BEFORE, (), cache="null", threads=16, users=1000)

    assert merged == replace(BEFORE, cache="null", threads=16, users=1000)


@pytest.mark.parametrize(
    ("given", "extras"),
    [
        (("proxysql",), ("proxysql",)),
        (("none",), ()),
    ],
)
def test_given_extras_replace_previous_ones(
    given: tuple[str, ...], extras: tuple[str, ...]
) -> None:
    assert merge_options(BEFORE, given).extras == extras


def test_extra_services_start_in_order() -> None:
    usual = [service.name for service in select_services(())]
    with_proxy = [service.name for service in select_services({"proxysql"})]

    assert set(usual).isdisjoint(EXTRA_SERVICES)
    assert set(with_proxy) - set(usual) == {"proxysql"}
    order = [with_proxy.index(name) for name in ("mariadb", "proxysql", "keystone")]
    assert order == sorted(order)
    with_service = [service.name for service in select_services({"service"})]
    assert with_service.index("keystone") < with_service.index("service")
    assert set(EXTRA_SERVICES) < {service.name for service in SERVICES}


def test_second_node_starts_after_both_cache_servers() -> None:
    """A node avoids a cache server that it has not reached for five minutes."""
    names = [service.name for service in select_services({"second-node"})]

    starts = ("memcached", "second-memcached", "keystone", "second-node")
    assert [name for name in names if name in starts] == [*starts]


@pytest.mark.parametrize("name", OPTIONAL_SERVICES)
def test_optional_service_is_selected_if_installed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    without = select_services(())
    (tmp_path / name).touch(mode=0o755)

    assert {one.name for one in select_services(())} - {
        one.name for one in without
    } == {name}
