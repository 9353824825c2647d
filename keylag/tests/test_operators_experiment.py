"""Experiments on Keystones that an operator installed by pip, without a stack."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from keylag.cli import main
from keylag.experiment.run_folder import RunFolder
from keylag.ports import allocate_ports
from keylag.sample_cloud import CloudSize, populate_keystone
from keylag.stack_record import AdminCredentials
from keylag_dev.operators_keystone import (
    BARE,
    INSTRUMENTED,
    OperatorsKeystone,
    install,
)

pytestmark = pytest.mark.matrix

USERS = 6
PASSWORD = "secret"  # noqa: S105 - of a Keystone that lives as long as a test
KEYSTONE_CONF = """\
[database]
connection = sqlite:///{site}/keystone.db
[fernet_tokens]
key_repository = {site}/fernet-keys
[fernet_receipts]
key_repository = {site}/fernet-keys
[credential]
key_repository = {site}/credential-keys
[identity]
password_hash_rounds = 4
[cache]
backend = dogpile.cache.memory
"""
DESIGN = """\
[remote]
{remote}
[load]
plan = "token-validate"
properties = {{ threads = 1, subjects = 2 }}
[design]
warm_up_seconds = 1
turn_seconds = 3
rounds = 5
minutes = 60
ends_at_verdict = false
[decision]
method = "GET"
"""
ARMS_AT_URLS = """\
question = "Does the instrumented Keystone validate as fast?"
base = "bare"
{design}
[arms.bare]
url = "{bare.url}"
restart = "{bare.restart_command}"
[arms.instrumented]
url = "{instrumented.url}"
restart = "{instrumented.restart_command}"
"""
SWITCHED = """\
question = "Does the cache make validations faster?"
base = "cached"
{design}
[arms.cached]
switch = "sed -i 's/^backend = .*/backend = dogpile.cache.memory/' {conf} && {restart}"
[arms.uncached]
switch = "sed -i 's/^backend = .*/backend = dogpile.cache.null/' {conf} && {restart}"
"""


@pytest.fixture(scope="module")
def keystones(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, OperatorsKeystone]]:
    """Two Keystones from PyPI with one database, one of them with keylag-otel."""
    folder: Path = tmp_path_factory.mktemp("operator")
    wanted = {"bare": BARE, "instrumented": INSTRUMENTED}
    ports = allocate_ports(wanted, {})
    configuration = KEYSTONE_CONF.format(site=folder / "site")
    made = {}
    for name, module in wanted.items():
        environment = install(folder / f"{name}-installation", module)
        made[name] = OperatorsKeystone(
            environment, folder / name, configuration, module, ports[name]
        )
        made[name].configure()
    made["bare"].bootstrap(folder / "site", PASSWORD)
    try:
        for one in made.values():
            one.start()
        yield made
    finally:
        for one in made.values():
            one.stop()


@pytest.fixture(scope="module")
def users(
    keystones: dict[str, OperatorsKeystone], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The CSV file of users whom both Keystones know."""
    file: Path = tmp_path_factory.mktemp("users") / "users.csv"
    admin = AdminCredentials(keystones["bare"].url, PASSWORD)
    populate_keystone(admin, file, PASSWORD, CloudSize(USERS))
    return file


@pytest.fixture(autouse=True)
def openrc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service user, in the variables of an openrc file."""
    monkeypatch.setenv("OS_USERNAME", "admin")
    monkeypatch.setenv("OS_PROJECT_NAME", "admin")
    monkeypatch.setenv("OS_PASSWORD", PASSWORD)


def run_plan(folder: Path, plan: str) -> tuple[str, dict[str, Any], str]:
    """Run a plan; return what it printed, result.json and report.md."""
    path, out = folder / "plan.toml", folder / "out"
    path.write_text(plan)
    words = ["experiment", "run", str(path), "--out", str(out), "--anyway"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    return done.output, result, (out / "report.md").read_text()


def test_bare_keystone_is_compared_by_the_latency_at_the_client(
    keystones: dict[str, OperatorsKeystone], users: Path, tmp_path: Path
) -> None:
    design = DESIGN.format(remote=f'users = "{users}"')
    plan = ARMS_AT_URLS.format(design=design, **keystones)

    output, result, report = run_plan(tmp_path, plan)

    (found,) = result["comparisons"]
    requests = result["requests"]
    assert result["events"] == []
    assert (result["rounds"], found["sound"]) == (5, True)
    assert found["has_parts"] == {"bare": False, "instrumented": True}
    assert set(found["measures"]) == {"p50", "p95", "mean", "throughput"}
    assert found["parts"] == found["counts"] == {}
    assert requests["bare"]["broken_down"] == 0
    assert requests["instrumented"]["broken_down"] > 20
    assert "bare sends no Server-Timing of Keylag" in output
    assert "bare: latency at the client only." in report
    assert "The cost of Keylag in instrumented is part of the difference" in report
    assert "part of the mean (ms)" not in report
    assert "No command restarts" not in report


def test_command_switches_a_setting_of_one_keystone(
    keystones: dict[str, OperatorsKeystone], users: Path, tmp_path: Path
) -> None:
    one = keystones["instrumented"]
    conf = one.folder / "keystone.conf"
    remote = f'url = "{one.url}"\nusers = "{users}"'
    plan = SWITCHED.format(
        design=DESIGN.format(remote=remote), conf=conf, restart=one.restart_command
    )

    _, result, report = run_plan(tmp_path, plan)

    (found,) = result["comparisons"]
    statements = {
        row.arm: row.server_timing["sql_statements"]
        for row in RunFolder(tmp_path / "out").load_rows()
    }
    assert result["events"] == []
    assert found["has_parts"] == {"cached": True, "uncached": True}
    assert result["rounds"] == 5
    assert statements["cached"] < statements["uncached"], "of the last requests"
    assert "uncached: every response has the parts" in report
    assert "backend = dogpile.cache.memory" in conf.read_text()


def test_keystone_that_is_down_or_has_other_users_is_refused_before_the_run(
    keystones: dict[str, OperatorsKeystone], users: Path, tmp_path: Path
) -> None:
    design = DESIGN.format(remote=f'users = "{tmp_path}/users.csv"')
    plan = ARMS_AT_URLS.format(design=design, **keystones)
    (tmp_path / "users.csv").write_text(
        users.read_text() + "stranger,wrong,acme,project-0,acme\n"
    )
    (tmp_path / "plan.toml").write_text(plan)
    words = ["experiment", "run", str(tmp_path / "plan.toml"), "--dry-run"]

    refused = CliRunner().invoke(main, words)
    bare = f'url = "{keystones["bare"].url}"'
    (tmp_path / "plan.toml").write_text(
        plan.replace(bare, 'url = "http://127.0.0.1:9"')
    )
    down = CliRunner().invoke(main, words)

    assert refused.exit_code == down.exit_code == 1
    assert "stranger (401). Create them there" in refused.output
    assert "http://127.0.0.1:9 does not answer" in down.output
