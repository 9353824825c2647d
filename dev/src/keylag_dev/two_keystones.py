"""Runs experiments/two-keystones.toml on two Keystones from pip, and keeps its report.

    python -m keylag_dev.two_keystones

They are as an operator has them: from PyPI, with a keystone.conf, under uWSGI.  That of
today is bare, and the candidate has keylag-otel.  Both use the database, the keys and
the memcached of one stack, whose own Keystone gets no load.  A run that is complete is
kept as it is; for another one, move it away.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from configparser import RawConfigParser
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from io import StringIO
from typing import Final

from keylag.experiment.settings import Arm
from keylag.experiment.stack_setup import make_stack
from keylag.ports import allocate_ports
from keylag.sample_cloud import users_file
from keylag.services.keystone import CONFIG_FOLDER, oslo_variables
from keylag.stack import Stack
from keylag.stack_shutdown import stop_stacks_in
from keylag.state import state_folder
from keylag_dev import experiment_reports
from keylag_dev.operators_keystone import (
    BARE,
    INSTRUMENTED,
    OperatorsKeystone,
    install,
    stop_installed,
)
from keylag_dev.repeated_experiments import read_complete

PLAN: Final = "two-keystones"
DOMAIN: Final = "Default"
"""Of the administrator."""
MODULES: Final = {"today": BARE, "candidate": INSTRUMENTED}
"""What each arm of the plan serves."""


def keystone_conf(variables: Mapping[str, str]) -> str:
    """Return a keystone.conf with the options that variables of oslo.config set."""
    file = RawConfigParser()
    file.read(CONFIG_FOLDER / "keystone.conf")
    for name, value in variables.items():
        group, separator, option = name.removeprefix("OS_").partition("__")
        if separator:
            section = group if group == file.default_section else group.lower()
            if section not in file:
                file.add_section(section)
            file.set(section, option.lower(), value)
    text = StringIO()
    file.write(text)
    return text.getvalue()


def plan_variables(
    stack: Stack, keystones: Mapping[str, OperatorsKeystone]
) -> dict[str, str]:
    """Return the environment that the plan needs, with the service user."""
    admin = stack.admin()
    found = {
        "OS_USERNAME": admin.username,
        "OS_PROJECT_NAME": admin.project_name,
        "OS_USER_DOMAIN_NAME": DOMAIN,
        "OS_PROJECT_DOMAIN_NAME": DOMAIN,
        "OS_PASSWORD": admin.password,
        "USERS_CSV": str(users_file(stack)),
    }
    for name, one in keystones.items():
        found[f"{name.upper()}_URL"] = one.url
        found[f"{name.upper()}_RESTART"] = one.restart_command
    return found


def main() -> None:
    """Keep the report of a complete run, or make one."""
    run = experiment_reports.RUNS / PLAN
    if run.exists() and not read_complete(run):
        sys.exit(f"{run} was interrupted, and its Keystones are gone. Move it away.")
    keystones: AbstractContextManager[Mapping[str, str]] = (
        nullcontext({}) if run.exists() else both_keystones()
    )
    with keystones as variables:
        os.environ.update(variables)
        experiment_reports.main([PLAN])


@contextmanager
def both_keystones() -> Iterator[dict[str, str]]:
    """Start both Keystones, yield what the plan needs, and stop them."""
    folder = (state_folder() / PLAN).resolve()
    stop_installed(folder)
    stop_stacks_in(folder, recursive=False)
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as running:
        stack = running.enter_context(make_stack(folder / "stack", Arm()))
        configuration = keystone_conf(oslo_variables(stack.context()))
        ports = allocate_ports(MODULES, {})
        keystones = {
            name: OperatorsKeystone(
                install(folder / f"{name}-installation", module),
                folder / name,
                configuration,
                module,
                ports[name],
            )
            for name, module in MODULES.items()
        }
        for one in keystones.values():
            one.configure()
            running.callback(one.stop)
            one.start()
        yield plan_variables(stack, keystones)


if __name__ == "__main__":
    main()
