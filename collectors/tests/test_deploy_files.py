"""The files that operators copy: ../../deploy/{kolla-ansible,debian,rdo,...}."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache import CONFIGURATION, apache
from opentelemetry.sdk import environment_variables
from test_servers import exporting
from wsgi_servers import BIN, uwsgi

from keylag_otel import environment

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = DEPLOY / "kolla-ansible" / "Dockerfile"
DEBIAN = DEPLOY / "debian" / "keylag.conf"
OPENSTACK_ANSIBLE = DEPLOY / "openstack-ansible" / "user_keylag.yml"
RDO = DEPLOY / "rdo" / "keylag.py"
RDO_DROP_IN = DEPLOY / "rdo" / "zz-keylag.conf"

INSTALLED = "/opt/keylag-otel/lib/python3/site-packages"
OWN_MODULE = "keystone.wsgi.api:application"
UWSGI_PREFIX = "UWSGI_"


def dockerfile_variables() -> dict[str, str]:
    """Return what the instruction ENV sets."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    lines = re.findall(r"^ENV (.+)", text, re.MULTILINE)
    return dict(word.split("=", 1) for line in lines for word in shlex.split(line))


def drop_in_variables() -> dict[str, str]:
    """Return what the systemd drop-in sets."""
    lines = re.findall(r"^Environment=(.+)", DEBIAN.read_text(), re.MULTILINE)
    return dict(line.split("=", 1) for line in lines)


def ansible_variables() -> dict[str, Any]:
    """Return the variables of OpenStack-Ansible."""
    return dict(yaml.safe_load(OPENSTACK_ANSIBLE.read_text()))


def script_variables() -> dict[str, str]:
    """Return the names that mod_wsgi's script sets, with the text of each value."""
    calls = [node for node in ast.walk(ast.parse(RDO.read_text())) if is_update(node)]
    return {
        str(keyword.arg): ast.literal_eval(keyword.value)
        if isinstance(keyword.value, ast.Constant)
        else ast.unparse(keyword.value)
        for call in calls
        for keyword in call.keywords
    }


def is_update(node: ast.AST) -> Any:
    """Return whether it is ``os.environ.update(...)``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "os.environ.update"


VARIABLES = {
    "kolla-ansible": dockerfile_variables(),
    "debian": drop_in_variables(),
    "openstack-ansible": ansible_variables()["keylag_environment"],
    "rdo": script_variables(),
}
each_folder = pytest.mark.parametrize("folder", VARIABLES)


@each_folder
def test_each_variable_exists(folder) -> None:
    names = [name for name in VARIABLES[folder] if not name.startswith(UWSGI_PREFIX)]
    known = {*vars(environment_variables), *vars(environment)}

    assert names
    assert set(names) - known == set()


@each_folder
def test_shared_variables_have_the_same_values(folder) -> None:
    per_controller = "OTEL_RESOURCE_ATTRIBUTES"
    expected, found = (
        {
            name: value
            for name, value in VARIABLES[each].items()
            if name.startswith("OTEL_") and name != per_controller
        }
        for each in ("kolla-ansible", folder)
    )

    assert found == expected


@pytest.mark.parametrize("folder", ["kolla-ansible", "debian"])
def test_each_option_of_uwsgi_exists(folder) -> None:
    shown = subprocess.run([BIN / "uwsgi", "--help"], capture_output=True, check=True)
    options = set(re.findall(r"--([\w-]+)", shown.stdout.decode()))
    names = [name for name in VARIABLES[folder] if name.startswith(UWSGI_PREFIX)]

    assert names
    assert {name[len(UWSGI_PREFIX) :].lower() for name in names} - options == set()


def test_imported_modules_exist() -> None:
    overrides = ansible_variables()["keystone_uwsgi_ini_overrides"]["uwsgi"]
    modules = {
        VARIABLES["kolla-ansible"]["UWSGI_PYIMPORT"],
        VARIABLES["debian"]["UWSGI_PYIMPORT"],
        overrides["wsgi"].partition(":")[0],
    }

    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def test_all_use_the_same_folder() -> None:
    assert drop_in_variables()["UWSGI_PYTHONPATH"] == INSTALLED
    assert f'"{INSTALLED}"' in RDO.read_text()


def test_requirement_of_openstack_ansible_names_this_package() -> None:
    (requirement,) = ansible_variables()["keystone_user_pip_packages"]
    project = (DEPLOY.parent / "collectors" / "pyproject.toml").read_text()
    (name,) = re.findall(r'^name = "(.+)"', project, re.MULTILINE)

    assert requirement.startswith(f"{name}[otlp] @ git+")
    assert requirement.endswith("#subdirectory=collectors")


def mod_wsgi(folder: Path) -> list[Any]:
    """Return the command of an Apache with the drop-in, and Keystone's own script."""
    script = folder / "keystone-wsgi-public"
    script.write_text(f"from {OWN_MODULE.replace(':', ' import ')}\n")
    ours = RDO.read_text().replace(INSTALLED, sysconfig.get_path("purelib"))
    # The endpoint is that of the test.
    ours = re.sub(r"\n *OTEL_EXPORTER_OTLP_ENDPOINT=.*", "", ours)
    (folder / RDO.name).write_text(ours)
    drop_in = RDO_DROP_IN.read_text().replace("/etc/keystone/", f"{folder}/")
    drop_in = drop_in.replace("keystone-public", "keystone")
    written = folder / CONFIGURATION.name
    # As in RDO's file: named in WSGIScriptAlias, they load Keystone before Keylag.
    named = " process-group=keystone application-group=${GROUP}"
    apart = "\nWSGIProcessGroup keystone\nWSGIApplicationGroup ${GROUP}\n"
    text = CONFIGURATION.read_text()
    assert named in text
    written.write_text(text.replace(named, apart) + drop_in)
    command = apache(script, threads=1)
    return [written if word == CONFIGURATION else word for word in command]


@pytest.mark.newest
@pytest.mark.matrix
@each_folder
def test_each_loads_keylag_into_an_unchanged_keystone(
    configuration, tmp_path, folder
) -> None:
    overrides = ansible_variables()["keystone_uwsgi_ini_overrides"]["uwsgi"]
    commands = {
        "kolla-ansible": uwsgi("--lazy-apps", module=OWN_MODULE),
        "debian": uwsgi("--lazy-apps", module=OWN_MODULE),
        "openstack-ansible": uwsgi("--lazy-apps", module=overrides["wsgi"]),
        "rdo": mod_wsgi(tmp_path),
    }
    ours = {} if folder == "rdo" else {**VARIABLES[folder]}
    # The endpoint is that of the test.
    ours.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
    ours |= {
        "OS_KEYSTONE_CONFIG_FILES": str(configuration),
        environment.KEYLAG_SERVER_TIMING: "true",
    }

    with exporting(commands[folder], tmp_path, **ours) as (server, sink):
        server.request_often(10)
        timing = server.request("GET", "/v3").header("server-timing")
        server.stop()

    assert timing.startswith("total;dur=")
    assert sink.requests == server.sent, server.tail()
