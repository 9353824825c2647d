"""What `keylag up` makes of its options and of those of last time."""

from pathlib import Path

import pytest

from keylag.commands.up import wanted
from keylag.services import EXTRAS, SERVICES, WHERE_FOUND, chosen
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


@pytest.mark.parametrize("name", WHERE_FOUND)
def test_a_program_that_is_there_is_a_service(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack without it is whole, and says nothing of it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    without = chosen(())
    (tmp_path / name).touch(mode=0o755)

    assert {one.name for one in chosen(())} - {one.name for one in without} == {name}
