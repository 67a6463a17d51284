"""How many tests passed, by the runners' own last words; and nothing of what others print."""

from __future__ import annotations

import pytest

from bot.counts import Counts, counts_of

PYTEST = """\
..F.s                                                                    [100%]
=================================== FAILURES ===================================
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b - assert 1 == 2
========= 1 failed, 3 passed, 1 skipped, 2 xfailed, 1 error in 0.12s ==========
"""
UNITTEST = """\
.F.s
----------------------------------------------------------------------
Ran 4 tests in 0.001s

FAILED (failures=1, skipped=1)
"""
GO_VERBOSE = """\
=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
    --- FAIL: TestB/sub (0.00s)
--- FAIL: TestB (0.00s)
=== RUN   TestC
--- SKIP: TestC (0.01s)
FAIL
FAIL\texample.org/a\t0.003s
ok  \texample.org/b\t0.002s
FAIL
"""
GO = "ok  \texample.org/a\t0.003s\nok  \texample.org/b\t(cached)\n?   \texample.org/c\t[no test files]\n"
CARGO = """\
running 2 tests
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests shop
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""
JEST = """\
Test Suites: 1 failed, 1 passed, 2 total
Tests:       1 failed, 1 skipped, 5 passed, 7 total
Snapshots:   0 total
"""
JUNIT = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="all" tests="9" failures="1" errors="1" skipped="2" time="0.1">
<testsuite name="pytest" errors="1" failures="1" skipped="2" tests="9" time="0.1">
<testcase classname="a" name="b"/></testsuite></testsuites>
"""


def counts(runner: str, *figures: int, unit: str = "tests") -> Counts:
    passed, failed, errors, skipped = figures
    return Counts(runner=runner, passed=passed, failed=failed, errors=errors, skipped=skipped, unit=unit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "log"),
    [
        (counts("pytest", 3, 1, 1, 3), PYTEST),
        (counts("pytest", 12, 0, 0, 0), "............ [100%]\n12 passed in 0.01s\n"),
        (counts("pytest", 1, 0, 0, 0), "\x1b[32m== \x1b[1m1 passed\x1b[0m in 0.01s\x1b[32m ==\x1b[0m\n"),
        (counts("pytest", 2, 0, 0, 0), "==== 2 passed, 4 deselected, 3 warnings in 3725.10s (1:02:05) ====\n"),
        (counts("pytest", 0, 0, 0, 0), "==== no tests ran in 0.01s ====\r\n"),
        (counts("unittest", 2, 1, 0, 1), UNITTEST),
        (counts("unittest", 4, 0, 0, 0), "Ran 4 tests in 0.001s\n\nOK\n"),
        (counts("go test", 1, 1, 0, 1), GO_VERBOSE),
        (counts("go test", 2, 0, 0, 0, unit="packages"), GO),
        (counts("cargo test", 3, 1, 0, 1), CARGO),
        (counts("jest", 5, 1, 0, 1), JEST),
        (counts("JUnit XML", 5, 1, 1, 2), JUNIT),
    ],
)  # fmt: skip
def test_the_figures_are_the_runners_own(expected: Counts, log: str) -> None:
    assert expected == counts_of(log, whole=True, exit_code=1)


@pytest.mark.parametrize(
    "log",
    [
        "",
        "all 12 passed in my head\n",
        "x 12 passed in 0.01s\n",
        "12 passed in 0.01s, honestly\n",
        "\uff11\uff12 passed in 0.01s\n",
        "99999999999999999999 passed in 0.01s\n",
        "Ran 4 tests in 0.001s\nOK\n",
        "Ran 1 test in 0.001s\n\nFAILED (failures=9)\n",
        "Ran 4 tests in 0.001s\n\nOK (failures=1)\n",
        "test result: ok. 2 passed; 0 failed\n",
        "Tests:       5 passed, 9 total\n",
        "--- PASS: TestA (0.00s)\n",
        '<testsuite tests="1" failures="9"/>',
        '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite tests="&a;"/>',
        "<testsuite" + " a" * 100_000,
        "1 passed, " * 50_000,
        "=" * 1_000_000,
        "\0" * 1000,
    ],
)
def test_what_no_runner_prints_is_no_figure(log: str) -> None:
    assert counts_of(log, whole=True, exit_code=0) is None


@pytest.mark.parametrize("log", [PYTEST, UNITTEST, GO_VERBOSE, CARGO, JEST, JUNIT])
def test_failures_that_the_exit_code_denies_are_left_out(log: str) -> None:
    assert counts_of(log, whole=True, exit_code=0) is None


@pytest.mark.parametrize("log", [GO, CARGO, JUNIT])
def test_a_sum_is_not_made_of_the_half_of_a_log(log: str) -> None:
    assert counts_of(log, whole=False, exit_code=1) is None


def test_the_last_word_counts() -> None:
    log = "==== 100 passed in 0.01s ====\n" + UNITTEST
    assert counts("unittest", 2, 1, 0, 1) == counts_of(log, whole=True, exit_code=1)
