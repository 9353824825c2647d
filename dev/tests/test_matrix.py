"""The releases of Keystone that the collectors are tested with."""

import pytest

from keylag.state import CHECKOUT
from keylag_dev import matrix


def test_every_release_of_the_matrix_has_a_lock_of_its_own() -> None:
    """The name of a release is the name of its lock."""
    locks = [tool.inputs[0] for tool in matrix.RELEASES.values()]

    assert all((CHECKOUT / lock).exists() for lock in locks)
    assert len(set(locks)) == len(locks)


def test_a_release_that_nobody_locked_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is run, and what there is is named."""
    assert matrix.main(["1999.1"]) == 2
    assert "2023.1" in capsys.readouterr().out
