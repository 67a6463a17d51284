"""A command's words."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.arguments import Arguments, Spec, parse
from handlers.misread import Duplicate, MissingValue, UnclosedQuote, UnknownArgument

RUN = Spec(needed=("TASK",), keys=("sha", "difficulty"), more=True)


@pytest.mark.parametrize(
    ("expected", "rest"),
    [
        (Arguments(("fix",)), "fix"),
        (Arguments(("fix", "a b", "c")), "fix 'a b' \"c\""),
        (Arguments(("fix", "a b")), "fix a\\ b"),
        (Arguments(("fix", "")), "fix ''"),
        (Arguments(("fix", "ab")), "fix a'b'"),
        (Arguments(("fix", "$HOME", "`id`", "$(id)", "*.py")), "fix $HOME `id` '$(id)' *.py"),
        (Arguments(("fix", "~", "a;b", "&&", "#x", "a|b", ">c")), "fix ~ a;b && #x a|b >c"),
        (Arguments(("fix", "*a*", "_b_")), "fix *a* _b_"),
        (Arguments(("fix", "-")), "fix -"),
        (Arguments(("fix",), {"sha": "1"}), "fix sha=1"),
        (Arguments(("fix",), {"sha": "1"}), "sha=1 fix"),
        (Arguments(("fix",), {"sha": "1"}), "fix SHA=1"),
        (Arguments(("fix",), {"sha": "1"}), "fix --sha=1"),
        (Arguments(("fix",), {"sha": "a=b c"}), "fix sha='a=b c'"),
        (Arguments(("fix", "http://x/?a=b")), "fix http://x/?a=b"),
        (Arguments(("fix",), {}, ("-v", "--all", "sha=1", "--", "x y")), "fix -- -v --all sha=1 -- 'x y'"),
        (Arguments(("fix",)), "fix --"),
        (Arguments(("fix",)), "fix \\"),
        (Arguments(("fix", "a\\")), "fix a\\\\"),
        (Arguments(("\u65e5\u672c", "\u00e9\u00a0x")), "\u65e5\u672c \u00e9\u00a0x"),
        (UnknownArgument("dificulty", "difficulty"), "fix dificulty=easy"),
        (UnknownArgument("--shaa", "sha"), "fix --shaa"),
        (UnknownArgument("-v", None), "fix -v"),
        (UnknownArgument("xyz", None), "fix xyz=1"),
        (MissingValue("TASK"), ""),
        (MissingValue("TASK"), "sha=1"),
        (MissingValue("TASK"), "-- fix"),
        (MissingValue("sha"), "fix sha="),
        (MissingValue("sha"), "fix --sha"),
        (MissingValue("sha"), "fix sha=''"),
        (Duplicate("sha"), "fix sha=1 sha=1"),
        (Duplicate("sha"), "fix sha=1 --SHA=2"),
        (UnclosedQuote(), "fix 'a"),
        (UnclosedQuote(), 'fix "a'),
        (UnclosedQuote(), "fix -- it's"),
    ],
)  # fmt: skip
def test_words_are_split_as_a_shell_does_and_never_expanded(expected: object, rest: str) -> None:
    assert expected == parse(rest, RUN)


@pytest.mark.parametrize(
    ("expected", "rest", "spec"),
    [
        (UnknownArgument("now", None), "now", Spec()),
        (UnknownArgument("b", None), "a b", Spec(optional=("RUN",))),
        (UnknownArgument("b", None), "a -- b", Spec(optional=("RUN",))),
        (UnknownArgument("line", "lines"), "line=3", Spec(keys=("lines",))),
        (Arguments(), "", Spec(optional=("RUN",))),
        (Arguments(("wait for Bob's review",)), "wait for Bob's review", Spec(free=True)),
        (Arguments(("until friday",)), '"until friday"', Spec(free=True)),
        (Arguments(("x=1 --y -- z",)), "x=1 --y -- z", Spec(free=True)),
        (Arguments(), "", Spec(free=True)),
    ],
)
def test_each_command_takes_its_own_words(expected: object, rest: str, spec: Spec) -> None:
    assert expected == parse(rest, spec)


words = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85", exclude_categories=["Cc"]),
    max_size=12,
)


@given(words, st.lists(words), st.lists(words))
def test_a_command_written_anew_reads_the_same(task: str, plain: list[str], tail: list[str]) -> None:
    words = ("t" + task.replace("=", ""), *(word for word in plain if "=" not in word and not word.startswith("-")))
    asked = Arguments(words, {"sha": "1" * 40}, tuple(tail))
    assert asked == parse(asked.as_written(), RUN)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["a", "b c", "'d e'", '"f g"', "\\ ", "''", "\u00e9", "'$x'", "\\'", "h\\\\"])))
def test_a_shell_splits_it_the_same_way(pieces: list[str]) -> None:
    text = " ".join(["t", *pieces])
    shell = subprocess.run(["sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True)
    assert Arguments(tuple(shell.stdout.decode().split("\0")[:-1])) == parse(text, Spec(needed=("TASK",), more=True))
