"""How many tests passed: read from the words with which a known runner closes its log, and from nothing else.

A log is a stranger's text. Only whole lines of the exact form count, and figures that contradict the exit code are
left out: a report says what was seen, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from bot.invisible import made_visible

WINDOW = 1 << 20
"""Bytes of a log's end that are looked at. Runners that say it bit by bit are read only where the whole log fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a runner said it had run. `unit` is what it counts."""

    runner: str
    passed: int
    failed: int
    errors: int = 0
    skipped: int = 0
    unit: Literal["tests", "packages"] = "tests"

    @property
    def bad(self) -> int:
        return self.failed + self.errors


def counts_of(text: str, *, whole: bool, exit_code: int | None) -> Counts | None:
    """The figures in the end of a log (`whole`: all of it); None where no runner said any that fit `exit_code`.

    Where several runners speak, the last one whose form is found counts.
    """
    plain = made_visible(text.replace("\r\n", "\n"), keep="\n\t")
    found = [(place, counts) for read in _READERS for place, counts in read(plain, whole)]
    if not found:
        return None
    _, counts = max(found, key=lambda pair: pair[0])
    return None if exit_code == 0 and counts.bad else counts


Found = Iterable[tuple[int, Counts]]
"""(place in the text, figures)"""

_N = r"([0-9]{1,9})"
_TOOK = r"[0-9]{1,9}(?:\.[0-9]{1,9})?s"

_WORD = r"[0-9]{1,9} (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun|subtests passed)"
_PYTEST = re.compile(
    rf"^(?:=+ )?({_WORD}(?:, {_WORD})*|no tests ran) in {_TOOK}(?: \([0-9a-z, :]{{1,40}}\))?(?: =+)?$",
    re.MULTILINE | re.ASCII,
)
_NUMBERED = re.compile(r"([0-9]{1,9}) ([a-z]+)", re.ASCII)


def _pytest(text: str, _whole: bool) -> Found:
    for found in _PYTEST.finditer(text):
        said = {word.rstrip("s"): int(number) for number, word in _NUMBERED.findall(found[1])}
        yield (
            found.start(),
            Counts(
                runner="pytest",
                passed=said.get("passed", 0) + said.get("xpassed", 0),
                failed=said.get("failed", 0),
                errors=said.get("error", 0),
                skipped=said.get("skipped", 0) + said.get("xfailed", 0),
            ),
        )


_UNITTEST = re.compile(
    rf"^Ran {_N} tests? in {_TOOK}\n\n(OK|FAILED|NO TESTS RAN)(?: \(([a-z0-9=, ]{{1,200}})\))?$",
    re.MULTILINE | re.ASCII,
)
_NAMED = re.compile(r"([a-z ]+)=([0-9]{1,9})", re.ASCII)


def _unittest(text: str, _whole: bool) -> Found:
    for found in _UNITTEST.finditer(text):
        said = {name.strip(): int(number) for name, number in _NAMED.findall(found[3] or "")}
        failed = said.get("failures", 0) + said.get("unexpected successes", 0)
        errors, skipped = said.get("errors", 0), said.get("skipped", 0) + said.get("expected failures", 0)
        passed = int(found[1]) - failed - errors - skipped
        if passed >= 0 and (found[2] == "FAILED") == bool(failed + errors):
            counts = Counts(runner="unittest", passed=passed, failed=failed, errors=errors, skipped=skipped)
            yield found.start(), counts


_GO_TEST = re.compile(rf"^--- (PASS|FAIL|SKIP): \S{{1,300}} \({_TOOK}\)$", re.MULTILINE | re.ASCII)
_GO_PACKAGE = re.compile(
    rf"^(?:(ok)  ?\t\S{{1,300}}\t(?:{_TOOK}|\(cached\))(?:\t.{{0,200}})?|(FAIL)\t\S{{1,300}}\t?.{{0,200}})$",
    re.MULTILINE | re.ASCII,
)


def _go(text: str, whole: bool) -> Found:
    packages = list(_GO_PACKAGE.finditer(text))
    if not packages or not whole:
        return
    place = packages[-1].start()
    said = [found[1] for found in _GO_TEST.finditer(text)]
    if "\n=== RUN " in f"\n{text}":  # with -v it names each; else only those that failed
        tally = {word: said.count(word) for word in ("PASS", "FAIL", "SKIP")}
        yield place, Counts(runner="go test", passed=tally["PASS"], failed=tally["FAIL"], skipped=tally["SKIP"])
        return
    well = sum(1 for found in packages if found[1])
    yield place, Counts(runner="go test", passed=well, failed=len(packages) - well, unit="packages")


_CARGO = re.compile(
    rf"^test result: (ok|FAILED)\. {_N} passed; {_N} failed; {_N} ignored; {_N} measured; {_N} filtered out"
    rf"(?:; finished in {_TOOK})?$",
    re.MULTILINE | re.ASCII,
)


def _cargo(text: str, whole: bool) -> Found:
    results = list(_CARGO.finditer(text))
    if not results or not whole:
        return
    passed, failed, ignored = (sum(int(found[n]) for found in results) for n in (2, 3, 4))
    yield results[-1].start(), Counts(runner="cargo test", passed=passed, failed=failed, skipped=ignored)


_JEST = re.compile(
    rf"^Tests: {{1,12}}((?:[0-9]{{1,9}} (?:failed|skipped|todo|passed), )*){_N} total$", re.MULTILINE | re.ASCII
)


def _jest(text: str, _whole: bool) -> Found:
    for found in _JEST.finditer(text):
        said = {word: int(number) for number, word in _NUMBERED.findall(found[1])}
        if sum(said.values()) == int(found[2]):
            skipped = said.get("skipped", 0) + said.get("todo", 0)
            counts = Counts(runner="jest", passed=said.get("passed", 0), failed=said.get("failed", 0), skipped=skipped)
            yield found.start(), counts


_SUITE = re.compile(r"<testsuite(s?)((?: {1,4}[A-Za-z_:.-]{1,60}=\"[^\"<>]{0,500}\"){1,20})\s{0,4}/?>", re.ASCII)
_ATTRIBUTE = re.compile(r" (tests|failures|errors|skipped|disabled)=\"([0-9]{1,9})\"", re.ASCII)


def _junit(text: str, whole: bool) -> Found:
    """The start tags alone: an XML parser would take whatever a stranger's log holds at its word."""
    suites = list(_SUITE.finditer(text))
    if not suites or not whole:
        return
    outer = [found for found in suites if found[1] and ' tests="' in found[2]]
    said = [{name: int(number) for name, number in _ATTRIBUTE.findall(found[2])} for found in outer[-1:] or suites]
    failed, errors = (sum(one.get(name, 0) for one in said) for name in ("failures", "errors"))
    skipped = sum(one.get("skipped", one.get("disabled", 0)) for one in said)
    passed = sum(one.get("tests", 0) for one in said) - failed - errors - skipped
    if passed >= 0 and all("tests" in one for one in said):
        counts = Counts(runner="JUnit XML", passed=passed, failed=failed, errors=errors, skipped=skipped)
        yield suites[-1].start(), counts


_READERS: tuple[Callable[[str, bool], Found], ...] = (_pytest, _unittest, _go, _cargo, _jest, _junit)
