"""Options of `keylag up`, and selection of services."""

from pathlib import Path

import pytest

from keylag.commands.up import merge_options
from keylag.services import EXTRA_SERVICES, OPTIONAL_SERVICES, SERVICES, select_services
from keylag.services.base import StackOptions

BEFORE = StackOptions(cache="memcache_pool", processes=4, extras=("proxysql",))


def test_previous_options_are_the_default() -> None:
    assert merge_options(BEFORE, None, None, ()) == BEFORE


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
    assert merge_options(BEFORE, None, None, given).extras == extras


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
