"""Which requirement rows the tests show.

A test names its rows with `@covers("CCW-SIG-8", …)`. With GODWIT_TRACE_DIR set, the run writes python.json there with the
rows of the tests that ran and passed.
"""

import atexit
import csv
import json
import os
import unittest

from . import REPOSITORY

_covered: dict = {}
_process = os.getpid()


def _known_rows():
    rows = set()
    for path in (REPOSITORY / "spec" / "requirements").glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as file:
            rows.update(row[0] for row in csv.reader(file) if row)
    return rows


_rows = _known_rows()


def covers(*rows):
    unknown = [row for row in rows if row not in _rows]
    if unknown:
        raise ValueError(f"no such requirement rows: {unknown}")

    def mark(test):
        test.covers = rows
        return test

    return mark


class TestCase(unittest.TestCase):
    maxDiff = None

    def run(self, result=None):
        result = result or self.defaultTestResult()
        before = _troubles(result)
        super().run(result)
        if _troubles(result) == before:
            test = getattr(type(self), self._testMethodName)
            for row in getattr(test, "covers", ()):
                _covered.setdefault(row, []).append(self.id())
        return result


def _troubles(result):
    """Failures of subtests do not leave the test; they are counted in the result."""
    return sum(
        len(getattr(result, name))
        for name in ("failures", "errors", "skipped", "unexpectedSuccesses", "expectedFailures")
    )


@atexit.register
def _write():
    directory = os.environ.get("GODWIT_TRACE_DIR")
    if not directory or os.getpid() != _process:
        return
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "python.json"), "w", encoding="utf-8") as file:
        json.dump({"covered": {row: sorted(tests) for row, tests in sorted(_covered.items())}}, file, indent=2)
        file.write("\n")
