"""What `keylag up` makes of its options and of those of last time."""

import pytest

from keylag.commands.up import wanted
from keylag.services import EXTRAS, SERVICES, chosen
from keylag.services.base import StackOptions

BEFORE = StackOptions(cache="memcache_pool", processes=4, extras=("proxysql",))


def test_without_a_wish_it_is_as_last_time() -> None:
    """What was asked for once stays."""
    assert wanted(BEFORE, None, None, ()) == BEFORE


@pytest.mark.parametrize(
    ("said", "extras"),
    [
        (("proxysql",), ("proxysql",)),
        (("none",), ()),
    ],
)
def test_servers_asked_for_replace_those_of_last_time(
    said: tuple[str, ...], extras: tuple[str, ...]
) -> None:
    """And `none` ends them."""
    assert wanted(BEFORE, None, None, said).extras == extras


def test_extra_services_start_where_they_belong() -> None:
    """A proxy is there before Keystone, and after its database."""
    usual = [service.name for service in chosen(())]
    with_proxy = [service.name for service in chosen({"proxysql"})]

    assert set(usual).isdisjoint(EXTRAS)
    assert set(with_proxy) - set(usual) == {"proxysql"}
    order = [with_proxy.index(name) for name in ("mariadb", "proxysql", "keystone")]
    assert order == sorted(order)
    with_service = [service.name for service in chosen({"service"})]
    assert with_service.index("keystone") < with_service.index("service")
    assert set(EXTRAS) < {service.name for service in SERVICES}
