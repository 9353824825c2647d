"""Run modules of Keystone's own unit tests; write each test's outcome as JSON.

Runs in Keystone's environment: ``outcomes.py FILE with|without MODULE...``.
"""

import json
import sys
import unittest
from pathlib import Path

TOLD = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "failed",
    "addSkip": "skipped",
    "addExpectedFailure": "passed",
    "addUnexpectedSuccess": "failed",
}
"""The methods of a result, and what each says of a test."""


class Outcomes(unittest.TestResult):
    """Remembers what became of each test; a failure outlasts what comes after it."""

    def __init__(self) -> None:
        super().__init__()
        self.by_test: dict[str, str] = {}

    def tell(self, test: unittest.TestCase, outcome: str) -> None:
        """Note what a test came to."""
        if self.by_test.get(test.id()) != "failed":
            self.by_test[test.id()] = outcome


def _teller(outcome: str) -> object:
    def told(self: Outcomes, test: unittest.TestCase, *_: object, **__: object) -> None:
        self.tell(test, outcome)

    return told


for name, outcome in TOLD.items():
    setattr(Outcomes, name, _teller(outcome))


def main(file: str, arm: str, *modules: str) -> None:
    """Load Keylag if that is the arm, then run the modules."""
    if arm == "with":
        from keylag_otel import KeystoneInstrumentor

        KeystoneInstrumentor().instrument()
    outcomes = Outcomes()
    unittest.defaultTestLoader.loadTestsFromNames(modules).run(outcomes)
    Path(file).write_text(json.dumps(outcomes.by_test, indent=1))


if __name__ == "__main__":
    sys.argv, arguments = sys.argv[:1], sys.argv[1:]
    main(*arguments)
