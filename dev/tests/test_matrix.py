"""The releases of Keystone that the collectors are tested with."""

import pytest

from keylag.paths import CHECKOUT
from keylag_dev import matrix


def test_each_release_has_its_own_lock_file() -> None:
    locks = [tool.inputs[0] for tool in matrix.RELEASES.values()]

    assert all((CHECKOUT / lock).exists() for lock in locks)
    assert len(set(locks)) == len(locks)


def test_unknown_release_is_rejected_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert matrix.main(["1999.1"]) == 2
    assert "2023.1" in capsys.readouterr().out
