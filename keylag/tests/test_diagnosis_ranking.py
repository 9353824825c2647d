"""The order of causes: which one is first, and why the others are not."""

from dataclasses import replace

from diagnosed import VALIDATION, healthy_calls, judge, make_facts

from keylag.diagnosis.document import as_json
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.ranking import diagnose
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import Rule, Saving, Suspicion


def slow(seconds: float, *cells: tuple[str, str], **answers: object) -> Facts:
    calls = healthy_calls(VALIDATION, dict.fromkeys(cells, seconds))
    return make_facts(calls, **answers)  # type: ignore[arg-type]


def test_runner_up_is_the_next_finding() -> None:
    both = slow(0.1, ("other", "roles"), ("ldap", "validate"), cpu_wait_seconds=0.0)

    first, second = as_json(judge(both))["findings"]

    assert {first["id"], second["id"]} == {"A1", "L1"}
    assert first["runner_up"]["id"] == second["id"]
    assert "s/s at least, and" in first["runner_up"]["why"]


def test_runner_up_of_the_last_finding_is_what_costs_too_little() -> None:
    facts = make_facts(
        healthy_calls(VALIDATION, {("other", "roles"): 0.1, ("ldap", "validate"): 0.02})
    )

    (finding,) = as_json(judge(facts))["findings"]

    assert finding["id"] == "A1"
    assert finding["runner_up"]["id"] == "L1"
    assert finding["runner_up"]["why"].endswith("costs 17%, or doubles a p95.")


def test_runner_up_may_be_explained_away() -> None:
    facts = slow(0.2, ("sql_pool", "validate"), sql_pool_waits=5.0)
    lockless = judge(facts)
    assert [one.rule.id for one in lockless.findings] == ["D5"]

    locks = slow(
        0.2,
        ("sql_pool", "validate"),
        ("sql", "validate"),
        sql_pool_waits=5.0,
        log_seconds=[Sample({"id": "a"}, 0.2)],
        log_lock_seconds=[Sample({"id": "a"}, 0.19)],
    )
    (finding,) = as_json(judge(locks))["findings"]

    assert finding["id"] == "D4"
    assert [one["id"] for one in finding["explained_away"]] == ["D5"]
    assert finding["runner_up"] == finding["explained_away"][0]
    assert "locks explains it" in finding["runner_up"]["why"]


def test_no_runner_up_if_nothing_else_costs_time() -> None:
    facts = slow(0.1, ("ldap", "validate"))
    diagnosis = diagnose(judge(facts).case, [RULES["L1"], RULES["C1"]])

    (finding,) = as_json(diagnosis)["findings"]

    assert finding["runner_up"] is None


def costs(rule: Rule, seconds: float) -> Rule:
    """Return a rule that always says what it costs a validation."""
    suspicion = Suspicion({VALIDATION: Saving(seconds, seconds, seconds)}, [])
    return replace(rule, judge=lambda _: suspicion)


def test_symptom_of_a_symptom_is_one_of_its_cause() -> None:
    """R2 explains D2, which explains D1; R2 does not name D1 itself."""
    case = judge(slow(0.1, ("sql", "validate"))).case
    rules = [costs(RULES[one], 0.05) for one in ("D1", "D2", "R2")]

    (finding,) = as_json(diagnose(case, rules))["findings"]

    assert "D1" not in RULES["R2"].explains
    assert finding["id"] == "R2"
    assert {one["id"] for one in finding["explained_away"]} == {"D1", "D2"}


def test_cheap_cause_does_not_explain_an_expensive_symptom() -> None:
    """D2 does not explain R2, so its cost does not tell which one is the cause."""
    case = judge(slow(0.1, ("sql", "validate"))).case
    rules = [costs(RULES["R2"], 0.02), costs(RULES["D2"], 0.08)]

    findings = diagnose(case, rules).findings

    assert [one.rule.id for one in findings] == ["D2", "R2"]


def test_wait_may_cost_more_than_its_cause() -> None:
    case = judge(slow(0.1, ("sql", "validate"))).case
    rules = [costs(RULES["C2"], 0.02), costs(RULES["W1"], 0.08)]

    (finding,) = diagnose(case, rules).findings

    assert finding.rule.id == "C2"


def test_dashboard_is_of_the_window() -> None:
    facts = slow(0.1, ("ldap", "validate"))

    (finding,) = as_json(judge(facts), "http://g")["findings"]

    assert finding["dashboard"].startswith("http://g/d/keylag-tokens?from=1000000&to=")
