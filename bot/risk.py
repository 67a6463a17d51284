"""`[risk]`: how much care a change asks for, in four tiers. A pure decision on what changed, by a repository's rules.

A rule that names more never makes a change look safer than it is: the highest tier counts, a file that nobody named is
an ordinary one, and whoever changes the rules themselves is looked at closest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import SchemaError, SchemaValidator, core_schema

from bot.paths import REPOSITORY_FILE, matches, shown_path
from bot.settings import Settings
from gitops.changes import Changed

Tier = Literal["T0", "T1", "T2", "T3"]
"""From what anybody may merge to what needs the closest look."""

TIERS: tuple[Tier, ...] = get_args(Tier)
ORDINARY: Tier = "T2"
"""What no rule names."""
RULES: Tier = "T3"
"""What the rule file itself is."""

NOTHING_CHANGED = "nothing changed"

LISTED = 5
"""How many reasons are told."""


def _glob(glob: str) -> str:
    """Raises `ValueError` for one that no path of a repository can match."""
    parts = glob.split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        folder = glob.strip("./")
        meant = f', did you mean "{folder}/**"?' if folder and glob.endswith("/") else ""
        raise ValueError(f'must be a glob of whole paths, like "src/**" or "**/*.sql", not "{glob}"{meant}')
    return glob


def _some(globs: tuple[str, ...]) -> tuple[str, ...]:
    if not globs:
        raise ValueError("must not be empty")
    return globs


def _pattern(pattern: str) -> str:
    """Raises `ValueError` for what is no regular expression, or asks for more than one walk along a line."""
    try:
        _finder(pattern)
    except SchemaError as problem:
        why = str(problem).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
        raise ValueError(f"is no regular expression that can be looked for: {why.rstrip('.')}") from None
    return pattern


@cache
def _finder(pattern: str) -> SchemaValidator:
    """Who finds the pattern in a line: the engine that pydantic brings along, whose time grows with the line's length
    and with nothing else. Python's own may take years for a line that somebody wrote to that end."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


Globs = Annotated[tuple[Annotated[str, AfterValidator(_glob)], ...], Field(strict=False), AfterValidator(_some)]


class RiskRule(Settings):
    """`[[risk.rules]]`: what is of a tier, and why."""

    tier: Tier = Field(description="what it makes a change; T3 is the highest")
    why: str = Field(min_length=1, max_length=200, description="the reason that people read")
    match: Globs | None = Field(default=None, description="globs: a changed file matches one of them")
    only_match: Globs | None = Field(default=None, description="globs: each changed file matches one of them")
    patch_contains: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_pattern)] | None = Field(
        default=None, description="regular expression: found in a line of a file's patch, behind its +, - or blank"
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum(one is not None for one in (self.match, self.only_match, self.patch_contains)) != 1:
            raise ValueError("must have one of match, only_match and patch_contains, and no more than one")
        return self

    def names(self, file: Changed) -> bool:
        """Is the file one that the rule is about?"""
        if self.patch_contains is not None:
            finder = _finder(self.patch_contains)
            return any(finder.isinstance_python(line) for line in file.patch or ())
        return any(matches(file.path, glob) for glob in self.match or self.only_match or ())


class RiskSettings(Settings):
    """`[risk]` of a repository's `.leadsman.toml`."""

    rules: Annotated[tuple[RiskRule, ...], Field(strict=False)] = Field(
        default=(), description="the highest tier of those that hold counts; what none names is T2"
    )
    size_caps: dict[Tier, Annotated[int, Field(ge=0)]] = Field(
        default={}, description="changed lines that a tier may have; with more it is the next higher one"
    )

    @property
    def reads_patches(self) -> bool:
        return any(rule.patch_contains is not None for rule in self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What a change is, and why. `tier` is None where nothing changed."""

    tier: Tier | None
    reasons: tuple[str, ...]
    files: int = 0
    added: int = 0
    deleted: int = 0


def assess(risk: RiskSettings, changed: Iterable[Changed]) -> Assessment:
    """The tier of a change. `changed` is walked along once, and of a file no more than its name is kept."""
    files = added = deleted = 0
    named: list[list[str]] = [[] for _ in risk.rules]
    own: list[str] = []
    unnamed: list[str] = []
    for file in changed:
        files, added, deleted = files + 1, added + (file.added or 0), deleted + (file.deleted or 0)
        groups = [found for rule, found in zip(risk.rules, named, strict=True) if rule.names(file)]
        if file.path == REPOSITORY_FILE:
            groups.append(own)
        for group in groups or [unnamed]:
            group.append(file.path)
    if not files:
        return Assessment(tier=None, reasons=(NOTHING_CHANGED,))
    found = [(RULES, f"the rules themselves change ({REPOSITORY_FILE})")] if own else []
    for rule, paths in zip(risk.rules, named, strict=True):
        if paths and (rule.only_match is None or len(paths) == files):
            found.append((rule.tier, f"{rule.why} ({_listed(paths)})"))
    if unnamed:
        found.append((ORDINARY, f"no rule names {_listed(unnamed)}"))
    tier, reasons = _highest(found)
    tier, reasons = _by_size(risk, tier, reasons, added + deleted)
    return Assessment(tier=tier, reasons=reasons, files=files, added=added, deleted=deleted)


def _highest(found: Sequence[tuple[Tier, str]]) -> tuple[Tier, tuple[str, ...]]:
    """The highest tier that was found, and what was found of it."""
    if not found:  # rules on all of a change name its files, and none of them holds
        return ORDINARY, ("no rule holds for all of it",)
    tier = max((tier for tier, _ in found), key=TIERS.index)
    reasons = [reason for one, reason in found if one == tier]
    more = [f"and for {len(reasons) - LISTED} more reasons"] if len(reasons) > LISTED else []
    return tier, (*reasons[:LISTED], *more)


def _by_size(risk: RiskSettings, tier: Tier, reasons: tuple[str, ...], lines: int) -> tuple[Tier, tuple[str, ...]]:
    """The next higher tier, where there is one, for a change of more lines than its own may have."""
    cap = risk.size_caps.get(tier)
    if cap is None or lines <= cap or tier == TIERS[-1]:
        return tier, reasons
    too_many = f"{lines} changed lines, more than the {cap} of {tier}"
    return TIERS[TIERS.index(tier) + 1], (too_many, *reasons)


def _listed(paths: Sequence[str]) -> str:
    first = shown_path(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"
