"""Find the mistakes of a plan about Keystones that run already."""

from collections.abc import Iterator, Mapping
from typing import Final

from keylag.experiment.plan import RemoteKeystone, variables_in
from keylag.experiment.settings import OWN_SETTINGS, Arm
from keylag.experiment.toml_positions import KeyPath, Mistake
from keylag.load_target import TargetError, split_url

REMOTE_SETTINGS: Final = OWN_SETTINGS | {"properties"}
"""The settings that an arm of a remote Keystone may have."""
STACK_ONLY: Final = "only for stacks; a remote Keystone has its own configuration"
SWITCH_MISSING: Final = (
    "`switch` is missing, the command that makes Keystone this arm. Without such "
    "commands, measure each configuration with a plan of one arm, and compare the runs "
    "with `keylag experiment compare`."
)
URL_MISSING: Final = (
    "`url` is missing, as of the Keystone that is this arm. For one Keystone that "
    "commands switch between the arms, set `url` in [remote]."
)
ONE_URL: Final = "not with `url` in [remote], of one Keystone that `switch` configures"
NO_SWITCH: Final = "only with `url` in [remote], of the one Keystone that is switched"


def remote_mistakes(
    arms: Mapping[str, Arm], remote: RemoteKeystone
) -> Iterator[Mistake]:
    """Yield the mistakes of arms that are remote Keystones."""
    for name, arm in arms.items():
        for setting in sorted(arm.model_fields_set - REMOTE_SETTINGS):
            yield ("arms", name, setting), STACK_ONLY
    if remote.url:
        yield from _switch_mistakes(arms, remote.url)
    else:
        yield from _url_mistakes(arms)


def _switch_mistakes(arms: Mapping[str, Arm], url: str) -> Iterator[Mistake]:
    yield from _invalid_url(("remote", "url"), url)
    for name, arm in arms.items():
        for setting in sorted(arm.model_fields_set & {"url", "restart"}):
            yield ("arms", name, setting), ONE_URL
        if len(arms) > 1 and not arm.switch:
            yield ("arms", name), SWITCH_MISSING


def _url_mistakes(arms: Mapping[str, Arm]) -> Iterator[Mistake]:
    for name, arm in arms.items():
        if arm.switch:
            yield ("arms", name, "switch"), NO_SWITCH
        if arm.url:
            yield from _invalid_url(("arms", name, "url"), arm.url)
        else:
            yield ("arms", name), URL_MISSING


def _invalid_url(key: KeyPath, url: str) -> Iterator[Mistake]:
    if variables_in(url):  # only a run needs their values
        return
    try:
        split_url(url)
    except TargetError as error:
        yield key, str(error)
