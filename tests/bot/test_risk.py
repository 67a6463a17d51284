"""The tier of a change: the highest counts, nothing unnamed is safe, and nobody's regular expression takes for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.config import ConfigErrors
from bot.config.repository import risk_rules
from bot.risk import Assessment, RiskRule, RiskSettings, assess
from gitops.changes import Changed


def rule(tier: str, **about: object) -> RiskRule:
    return RiskRule.model_validate({"tier": tier, "why": f"{tier} it is", **about})


def file(path: str, added: int | None = 1, deleted: int | None = 0, *patch: str) -> Changed:
    return Changed(path, added, deleted, patch or None)


def told(rules: Sequence[RiskRule], *files: Changed, **caps: int) -> Assessment:
    return assess(RiskSettings.model_validate({"rules": rules, "size_caps": caps}), files)


DOCS = rule("T0", only_match=["docs/**", "**/*.md"])
LOGIN = rule("T3", match=["src/auth/**"])
PAGES = rule("T1", match=["pages/*"])
SHELL = rule("T3", patch_contains=r"^\+.*\bos\.system\(")


@pytest.mark.parametrize(
    ("tier", "reason", "rules", "paths"),
    [
        ("T2", "no rule names a.py", [], ["a.py"]),
        ("T2", "no rule names a.py and 2 more", [], ["a.py", "b.py", "c.py"]),
        ("T3", "T3 it is (src/auth/a.py)", [LOGIN], ["src/auth/a.py"]),
        ("T3", "T3 it is (src/auth/a.py and 1 more)", [PAGES, LOGIN], ["pages/x", "src/auth/a.py", "src/auth/b/c.py"]),
        ("T1", "T1 it is (pages/x)", [PAGES], ["pages/x"]),
        # what nobody named is no safer for what stands beside it
        ("T2", "no rule names pages/deep/x", [PAGES], ["pages/x", "pages/deep/x"]),
        ("T0", "T0 it is (docs/a and 2 more)", [DOCS], ["docs/a", "src/x.md", "README.md"]),
        ("T2", "no rule names a.py", [DOCS], ["docs/a", "a.py"]),
        ("T1", "T1 it is (pages/x)", [DOCS, PAGES], ["docs/a", "pages/x"]),
        ("T2", "no rule holds for all of it", [DOCS, rule("T0", only_match=["t/**"])], ["docs/a", "t/x"]),
        ("T3", "the rules themselves change (.leadsman.toml)", [], [".leadsman.toml"]),
        ("T3", "the rules themselves change (.leadsman.toml)", [rule("T0", match=["**"])], ["a", ".leadsman.toml"]),
        ("T1", "T1 it is (sub/.leadsman.toml)", [rule("T1", match=["**"])], ["sub/.leadsman.toml"]),
        ("T2", "no rule names src/AUTH/a", [LOGIN], ["src/AUTH/a"]),
    ],
)
def test_the_highest_tier_that_holds_counts_and_what_no_rule_names_is_t2(
    tier: str, reason: str, rules: list[RiskRule], paths: list[str]
) -> None:
    found = told(rules, *map(file, paths))
    assert (tier, (reason,)) == (found.tier, found.reasons)


def test_an_empty_change_has_no_tier() -> None:
    assert Assessment(tier=None, reasons=("nothing changed",)) == told([DOCS, LOGIN])


@pytest.mark.parametrize(
    ("tier", "lines", "caps"),
    [
        ("T2", 250, {"T2": 250}),
        ("T3", 251, {"T2": 250}),
        ("T2", 99_999, {"T0": 1, "T1": 1}),
        ("T2", 0, {"T2": 0}),
        ("T3", 1, {"T2": 0, "T3": 0}),
    ],
)
def test_more_lines_than_its_tier_may_have_lift_a_change_by_one(tier: str, lines: int, caps: dict[str, int]) -> None:
    found = told([], file("a", lines // 2, lines - lines // 2), file("binary", None, None), **caps)
    assert tier == found.tier
    assert (tier == "T3") == (f"{lines} changed lines, more than the {caps.get('T2')} of T2" == found.reasons[0])


def test_a_change_is_lifted_by_one_tier_and_no_further() -> None:
    assert "T1" == told([DOCS], file("docs/a", 1000), T0=10, T1=20, T2=30).tier
    assert "T3" == told([LOGIN], file("src/auth/a", 1000), T2=1).tier


def test_additions_and_deletions_of_all_files_count() -> None:
    found = told([], file("a", 100, 50), file("b", 60, 41), T2=250)
    assert ("T3", 160, 91, 2) == (found.tier, found.added, found.deleted, found.files)


@pytest.mark.parametrize(
    ("tier", "patch"),
    [
        ("T3", (" import os", "+os.system('x')")),
        ("T2", ("-os.system('x')",)),
        ("T2", ("+os.", "+system(x)")),
        ("T2", ()),
    ],
)
def test_a_pattern_is_found_in_one_line_of_a_patch_behind_its_sign(tier: str, patch: tuple[str, ...]) -> None:
    assert tier == told([SHELL], file("a.py", 1, 1, *patch)).tier


def test_a_file_without_a_patch_satisfies_no_pattern() -> None:
    everything = rule("T3", patch_contains=".*")
    assert "T2" == told([everything], file("logo.png", None, None)).tier
    assert "T3" == told([everything], file("a", 1, 0, "+")).tier


def test_a_line_that_was_made_to_take_for_ever_takes_no_time() -> None:
    hostile = rule("T3", patch_contains=r"^\+(a+|aa)*(a|a?)+.*a.*a.*a[^a]$")
    assert "T2" == told([hostile], file("a", 1, 0, "+" + "a" * 100_000)).tier


def test_no_more_than_five_reasons_are_told() -> None:
    found = told([rule("T3", match=[f"{name}*"]) for name in "abcdefg"], *map(file, "abcdefg"))
    assert (6, "and for 2 more reasons") == (len(found.reasons), found.reasons[-1])


def test_names_that_are_no_text_are_told_as_text() -> None:
    assert ("no rule names caf\\xe9",) == told([], file("caf\udce9")).reasons


RULE = "[[risk.rules]]"
ONE = "must have one of match, only_match and patch_contains, and no more than one"
GLOB = 'must be a glob of whole paths, like "src/**" or "**/*.sql", not'
NO_PATTERN = f"{RULE} patch_contains: is no regular expression that can be looked for:"


@pytest.mark.parametrize(
    ("expected", "about"),
    [
        (f'{RULE} tier: must be T0, T1, T2 or T3, not "T4"', 'tier = "T4", why = "x", match = ["a"]'),
        (f"{RULE} why: is missing (the reason that people read)", 'tier = "T3", match = ["a"]'),
        (f"[risk] rules[0]: {ONE}", 'tier = "T3", why = "x"'),
        (f"[risk] rules[0]: {ONE}", 'tier = "T3", why = "x", match = ["a"], only_match = ["a"]'),
        (f'{RULE} match: must be a list, not "a"', 'tier = "T3", why = "x", match = "a"'),
        (f"{RULE} match: must not be empty", 'tier = "T3", why = "x", match = []'),
        (f'{RULE} match[0]: {GLOB} "docs/", did you mean "docs/**"?', 'tier = "T3", why = "x", match = ["docs/"]'),
        (f'{RULE} only_match[1]: {GLOB} "/a/**"', 'tier = "T3", why = "x", only_match = ["a", "/a/**"]'),
        (f"{NO_PATTERN} unclosed group", 'tier = "T3", why = "x", patch_contains = "("'),
        (f"{NO_PATTERN} backreferences are not supported", "tier = 'T3', why = 'x', patch_contains = '(a)\\1'"),
        (
            f"{NO_PATTERN} Compiled regex exceeds size limit of 10485760 bytes",
            'tier = "T3", why = "x", patch_contains = "(a{1000}){1000}"',
        ),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(expected: str, about: str) -> None:
    assert [f".leadsman.toml:2: {expected}"] == refusal(f"[risk]\nrules = [{{{about}}}]\n")


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ('[risk] size_caps.T9: must be T0, T1, T2 or T3, not "T9"', "size_caps = {T9 = 250}"),
        ('[risk] size_caps.T2: must be a whole number, not "many"', 'size_caps = {T2 = "many"}'),
        ("[risk] size_caps.T2: must be at least 0, not -1", "size_caps = {T2 = -1}"),
        ("[risk] rules: must be a list, not 1", "rules = 1"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(expected: str, text: str) -> None:
    assert [f".leadsman.toml:2: {expected}"] == refusal(f"[risk]\n{text}\n")


def refusal(text: str) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        risk_rules(text.encode())
    return [str(problem) for problem in refused.value.problems]


def test_what_nobody_knows_is_a_warning_and_the_rest_counts() -> None:
    found = risk_rules(
        b'[[risk.rules]]\ntier = "T3"\nwhy = "x"\nmatch = ["a"]\ncolour = 1\n[risk.size_caps]\nT3 = 1\n[task]\n'
    )
    assert [
        ".leadsman.toml:5: [[risk.rules]] colour: unknown key",
        ".leadsman.toml:7: [risk] size_caps.T3: has no meaning: there is no higher tier",
    ] == list(map(str, found.warnings))
    assert ("T3", ("a",)) == (found.settings.rules[0].tier, found.settings.rules[0].match)


def test_a_misspelt_key_that_leaves_a_rule_empty_refuses_it() -> None:
    assert [f".leadsman.toml:1: [risk] rules[0]: {ONE}"] == refusal(
        '[[risk.rules]]\ntier = "T3"\nwhy = "x"\nmacth = ["a"]\n'
    )


def test_a_file_that_is_too_large_is_not_read() -> None:
    with pytest.raises(ConfigErrors, match="larger than 262144 bytes"):
        risk_rules(b"#" * 262_145)
