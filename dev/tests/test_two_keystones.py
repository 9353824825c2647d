"""The keystone.conf of Keystones that share the servers of a stack."""

from configparser import RawConfigParser

from keylag_dev.two_keystones import keystone_conf


def test_variables_of_oslo_config_become_options_of_keystone_conf() -> None:
    variables = {
        "OS_DATABASE__CONNECTION": "mysql+pymysql://k:50%25@h/k",
        "OS_DEFAULT__PUBLIC_ENDPOINT": "http://k",
        "OS_KEYSTONE_CONFIG_DIR": "/etc/keystone",
    }
    found = RawConfigParser()
    found.read_string(keystone_conf(variables))

    assert found.get("database", "connection") == "mysql+pymysql://k:50%25@h/k"
    assert found.get("DEFAULT", "public_endpoint") == "http://k"
    assert found.get("token", "provider") == "fernet"
    assert "keystone_config_dir" not in found.defaults()
