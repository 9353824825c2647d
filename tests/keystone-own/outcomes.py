"""Runs modules of Keystone's own unit tests and writes each test's outcome as JSON.

Runs in Keystone's environment: ``outcomes.py FILE with|without MODULE...``.
"""

import json
import sys
import unittest
from pathlib import Path

OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "failed",
    "addSkip": "skipped",
    "addExpectedFailure": "passed",
    "addUnexpectedSuccess": "failed",
}
"""The outcome that each method of a test result reports."""


class Outcomes(unittest.TestResult):
    """Records the outcome of each test; a failure is final."""

    def __init__(self) -> None:
        super().__init__()
        self.by_test: dict[str, str] = {}

    def record(self, test: unittest.TestCase, outcome: str) -> None:
        """Record the outcome of a test."""
        if self.by_test.get(test.id()) != "failed":
            self.by_test[test.id()] = outcome


def _recorder(outcome: str) -> object:
    def method(
        self: Outcomes, test: unittest.TestCase, *_: object, **__: object
    ) -> None:
        self.record(test, outcome)

    return method


for name, outcome in OUTCOMES.items():
    setattr(Outcomes, name, _recorder(outcome))


def main(file: str, arm: str, *modules: str) -> None:
    """Run modules, instrumented if the arm is "with", and write outcomes to a file."""
    if arm == "with":
        from keylag_otel import KeystoneInstrumentor

        KeystoneInstrumentor().instrument()
    outcomes = Outcomes()
    unittest.defaultTestLoader.loadTestsFromNames(modules).run(outcomes)
    Path(file).write_text(json.dumps(outcomes.by_test, indent=1))


if __name__ == "__main__":
    sys.argv, arguments = sys.argv[:1], sys.argv[1:]
    main(*arguments)
