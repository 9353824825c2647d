"""Keystone's configuration beside the lines to change, and in what rules say."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from diagnosed import (
    LOGIN,
    VALIDATION,
    healthy_calls,
    judge,
    make_facts,
)

from keylag.commands import diagnose
from keylag.diagnosis.configuration import (
    Configuration,
    Option,
    read_configuration,
)
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.from_configuration import add_configuration
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.registry import RULES
from keylag.errors import WrongUsageError

REBUILT = healthy_calls(
    VALIDATION, {("sql", "validate"): 0.03, ("orm", "validate"): 0.03}, statements=49.0
)
TIMING = (
    "total;dur=92, sql_statements;desc=60, cache_calls;desc=0, sql.validate;dur=50,"
    " orm.validate;dur=40, policy.enforce;dur=2"
)


def read(folder: Path, text: str) -> Configuration:
    file = folder / "keystone.conf"
    file.write_text(text, encoding="utf-8")
    return read_configuration([file])


def run_command(*words: str) -> Result:
    return CliRunner().invoke(diagnose.command, [f"--server-timing={TIMING}", *words])


def found(facts: Facts) -> list[str]:
    return [one.rule.id for one in judge(facts).findings]


def test_last_value_counts_with_its_line(tmp_path: Path) -> None:
    text = "[cache]\n# no\nenabled = true\n\nenabled =\n    false\n[token]\n"

    setting = read(tmp_path, text).find("cache", "enabled")

    assert setting is not None
    assert (setting.value, setting.line, setting.is_false) == ("false", 5, True)


def test_last_option_of_a_file_has_its_line(tmp_path: Path) -> None:
    setting = read(tmp_path, "[cache]\nbackend = x").find("cache", "backend")

    assert setting is not None
    assert setting.line == 2


def test_same_option_of_another_section_is_another_one(tmp_path: Path) -> None:
    configuration = read(tmp_path, "[a]\ncaching = false\n[b]\ncaching = true\n")

    assert configuration.value("a", "caching") == "false"
    assert configuration.value("b", "caching") == "true"
    assert configuration.find("c", "caching") is None


def test_files_of_a_folder_override_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, value in (("b.conf", "2"), ("a.conf", "1"), ("c.txt", "3")):
        (tmp_path / name).write_text(f"[cache]\nbackend = {value}\n")
    (tmp_path / "keystone.main").write_text("[cache]\nbackend = 0\n")

    configuration = read_configuration([tmp_path / "keystone.main"], [tmp_path])

    setting = configuration.find("cache", "backend")
    assert setting is not None
    assert (setting.value, setting.file.name) == ("2", "b.conf")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("backend = x\n", "at line 1, an option is before the first [section]"),
        ("[cache]\nbackend\n", "at line 2, No ':' or '=' found"),
        ("[cache\n", "at line 1, Invalid section"),
        ("[cache]\n= x\n", "at line 2, Key cannot be empty"),
        ("\ud800", "can't encode"),
    ],
)
def test_bad_file_is_wrong_usage(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "keystone.conf").write_bytes(text.encode("utf-8", "surrogatepass"))

    with pytest.raises(WrongUsageError) as error:
        read_configuration([tmp_path / "keystone.conf"])

    expected = "can't decode" if "encode" in reason else reason
    assert expected in str(error.value)
    assert "keystone.conf is no configuration file of Keystone" in str(error.value)


def test_present_value_is_beside_the_line_to_change(tmp_path: Path) -> None:
    read(tmp_path, "[cache]\n\nenabled = false\n")

    text = run_command(f"--config={tmp_path / 'keystone.conf'}").output

    assert f"Now: false, line 3 of {tmp_path / 'keystone.conf'}." in text
    assert "Now: Keystone's default, as no file of --config sets it." in text


def test_without_a_configuration_nothing_is_said_of_it() -> None:
    assert "Now:" not in run_command().output


def test_json_has_the_present_value(tmp_path: Path) -> None:
    read(tmp_path, "[cache]\nbackend = dogpile.cache.null\n")

    output = run_command(f"--config-dir={tmp_path}", "--output=json").stdout

    fixes = json.loads(output)["findings"][0]["fix"]
    assert [one["present"] and one["present"]["value"] for one in fixes] == [
        "dogpile.cache.null",
        None,
        None,
        None,
        None,
    ]
    assert fixes[0]["present"]["line"] == 2


def test_password_of_the_database_is_not_shown(tmp_path: Path) -> None:
    text = "[database]\nconnection = mysql+pymysql://k:secret@db/keystone\n"

    setting = read(tmp_path, text).find("database", "connection")

    assert str(setting).startswith("mysql+pymysql://db/keystone, line 2 of ")


def test_each_option_of_a_fix_is_the_one_of_its_line() -> None:
    fixes = [one for rule in RULES.values() for one in rule.fixes if one.option]

    assert len(fixes) > 10
    for fix in fixes:
        assert fix.line.startswith(f"{fix.option} = ")
    assert all(
        fix.option
        for rule in RULES.values()
        for fix in rule.fixes
        if fix.file == "keystone.conf"
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[cache]\nenabled = false\nbackend = oslo_cache.memcache_pool\n", True),
        ("[cache]\nmemcache_servers = localhost:11211\n", True),
        ("[cache]\nbackend = oslo_cache.memcache_pool\n", False),
    ],
)
def test_configuration_tells_that_the_cache_is_disabled(
    tmp_path: Path, text: str, *, cause: bool
) -> None:
    facts = make_facts(REBUILT, without=["keylag-otel", "memcached"])

    judged = found(add_configuration(facts, read(tmp_path, text)))

    assert ("C1" in judged) is cause


def test_measured_backend_has_precedence(tmp_path: Path) -> None:
    facts = make_facts(REBUILT)

    judged = add_configuration(facts, read(tmp_path, "[cache]\nenabled = false\n"))

    assert judged.by("cache_backends", "keystone_cache_backend") == {
        "oslo_cache.memcache_pool": 4.0
    }


def test_disabled_cache_is_found_by_its_metric() -> None:
    disabled = [Sample({"keystone_cache_backend": "disabled"}, 4.0)]

    assert found(make_facts(REBUILT, cache_backends=disabled))[0] == "C1"


def test_section_without_caching_is_found(tmp_path: Path) -> None:
    facts = make_facts(REBUILT)
    text = "[role]\ncaching = false\n[token]\ncaching = true\n"

    diagnosis = judge(add_configuration(facts, read(tmp_path, text)))

    (finding,) = (one for one in diagnosis.findings if one.rule.id == "C1")
    assert finding.suspicion.evidence[0].text == "[role] caching"
    assert "C1" not in found(facts)


def test_short_cache_time_is_found(tmp_path: Path) -> None:
    lost = [
        Sample({"keystone_cache_region": "roles", "keystone_cache_result": "miss"}, 9.0)
    ]
    facts = make_facts(REBUILT, memoized=lost)
    text = "[cache]\nexpiration_time = 600\n[role]\ncache_time = 1\n"

    diagnosis = judge(add_configuration(facts, read(tmp_path, text)))

    (finding,) = (one for one in diagnosis.findings if one.rule.id == "C1")
    assert finding.suspicion.evidence[0].text == "time that [role] caches"
    assert "C1" not in found(facts)


def test_rounds_are_judged_without_their_metric(tmp_path: Path) -> None:
    slow = healthy_calls(LOGIN, {("password_hash", "authenticate"): 0.8})
    facts = make_facts(slow, without=["keylag-otel"])

    text = "[identity]\npassword_hash_rounds = 14\n"

    assert "H1" in found(add_configuration(facts, read(tmp_path, text)))
    text = "[identity]\npassword_hash_rounds = 12\n"
    assert "H1" not in found(add_configuration(facts, read(tmp_path, text)))


GALERA: dict[str, Any] = {
    "wsrep_cluster_size": 3.0,
    "sql_call_buckets": [
        Sample({"keystone_sql_call": "read", "le": "+Inf"}, 10.0),
    ],
    "sql_call_seconds": [Sample({"keystone_sql_call": "read"}, 0.5)],
}


@pytest.mark.parametrize(
    ("server", "own", "waits"),
    [(0.0, "7", True), (0.0, None, False), (1.0, "0", False), (1.0, None, True)],
)
def test_keystone_sets_causal_reads_for_itself(
    tmp_path: Path, server: float, own: str | None, *, waits: bool
) -> None:
    slow = healthy_calls(VALIDATION, {("sql", "validate"): 0.05})
    facts = make_facts(slow, wsrep_sync_wait=server, **GALERA)
    line = f"mysql_wsrep_sync_wait = {own}\n" if own else ""

    judged = found(add_configuration(facts, read(tmp_path, f"[database]\n{line}")))

    assert ("D8" in judged) is waits


def test_option_is_written_as_in_the_file() -> None:
    assert str(Option("cache", "enabled")) == "[cache] enabled"
