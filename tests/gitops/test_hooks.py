"""What git does inside a run: commits with trailers in the bot's name, and no push."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitops import evidence, hooks, worktree
from gitops.mirror import Mirror
from gitops.registration import Worktree
from tests.gitops.folk import BOT, Folder

TRAILERS = {"Leadsman-Run": "20260101-000000-abcdef", "Leadsman-Task": "fix", "Requested-by": "ada"}


@pytest.fixture
def tree(mirror: Mirror, main: str, place: Path) -> Worktree:
    return worktree.add(mirror, place / "run", branch="leadsman/run", sha=main)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its name is one that a shell would stumble over."""
    return tmp_path / 'ho\'oks "of" $(id)'


def committed(tree: Worktree, folder: Path, *args: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Commit inside the run; the author and the trailers of what came of it."""
    (tree.path / "a").write_text("1\n")
    inside = Folder(tree.path)
    environment = hooks.run_environment(folder, BOT)
    inside.git("add", "-A", environment=environment)
    inside.git("commit", "-q", *args, environment=environment)
    tip = inside.git("rev-parse", "HEAD")
    (commit,) = evidence.commits(tree.mirror, f"{tip}~1", tip)
    return commit.author, commit.trailers


def test_a_commit_gets_the_bots_name_and_the_runs_trailers(tree: Worktree, folder: Path) -> None:
    hooks.write(folder, TRAILERS)
    author, trailers = committed(tree, folder, "-m", "Work")
    assert author == "Leadsman <leadsman@bot.example>"
    assert dict(trailers) == TRAILERS


def test_trailers_that_are_there_stay_and_are_not_doubled(tree: Worktree, folder: Path) -> None:
    hooks.write(folder, TRAILERS)
    hooks.write(folder, TRAILERS)
    message = "Work\n\nCo-authored-by: Bo <bo@example.org>\nLeadsman-Task: fix\nRequested-by: someone else"
    _, trailers = committed(tree, folder, "-m", message)
    assert sorted(trailers) == sorted(
        [
            ("Co-authored-by", "Bo <bo@example.org>"),
            ("Leadsman-Run", "20260101-000000-abcdef"),
            ("Leadsman-Task", "fix"),
            ("Requested-by", "ada"),
            ("Requested-by", "someone else"),
        ]
    )


@pytest.mark.parametrize(
    ("value", "trailer"),
    [
        ("a\nEvil: yes", "a Evil: yes"),
        ("a\r\n\r\nEvil: yes", "a Evil: yes"),
        ("$(touch pwned) `id` ; rm -rf", "$(touch pwned) `id` ; rm -rf"),
        ("--in-place", "--in-place"),
        ("a\0b\x1b[31m\u2028c", "a b [31m c"),
        ("back\\slash 'q' \"q\"", "back\\slash 'q' \"q\""),
        ("ünï", "ünï"),
    ],
)
def test_a_hostile_value_is_one_trailer(tree: Worktree, folder: Path, value: str, trailer: str) -> None:
    hooks.write(folder, {"Requested-by": value, "Claim-Id": " \n"})
    _, trailers = committed(tree, folder, "-m", "Work")
    assert trailers == (("Requested-by", trailer),)
    assert not (tree.path / "pwned").exists()


def test_a_run_without_trailers_commits_as_well(tree: Worktree, folder: Path) -> None:
    hooks.write(folder, {})
    assert committed(tree, folder, "-m", "Work")[1] == ()


def test_nothing_is_pushed_from_inside_a_run(tree: Worktree, folder: Path, origin: Folder, main: str) -> None:
    hooks.write(folder, TRAILERS)
    committed(tree, folder, "-m", "Work")
    inside = Folder(tree.path)
    environment = hooks.run_environment(folder, BOT)
    for target in ("origin", str(origin.path)):
        inside.git("push", target, "HEAD:refs/heads/main", check=False, environment=environment)
        inside.git("push", "--force", target, "HEAD:refs/heads/leadsman/publish", check=False, environment=environment)
    assert origin.git("for-each-ref", "--format=%(refname) %(objectname)") == f"refs/heads/main {main}"
    inside.git("push", str(origin.path), "HEAD:refs/heads/outside")  # without the hooks it would have gone through
    assert "outside" in origin.git("for-each-ref")


def test_no_helper_of_the_host_answers_for_a_run(tree: Worktree, folder: Path, tmp_path: Path) -> None:
    hooks.write(folder, TRAILERS)
    config = tmp_path / "gitconfig"
    config.write_text('[credential]\n\thelper = "!f() { echo username=me; echo password=secret; }; f"\n')
    environment = {"GIT_CONFIG_GLOBAL": str(config)}
    asked = ("-c", "alias.ask=!printf 'protocol=https\\nhost=example.org\\n\\n' | git credential fill", "ask")
    inside = Folder(tree.path)
    assert "secret" in inside.git(*asked, check=False, environment=environment)
    assert "secret" not in inside.git(
        *asked, check=False, environment={**environment, **hooks.run_environment(folder, BOT)}
    )


def test_nothing_is_pushed_from_a_checkout_and_other_repositories_are_as_ever(
    tree: Worktree, folder: Path, origin: Folder, ada: Folder, tmp_path: Path
) -> None:
    hooks.write(folder, {})
    (tmp_path / "elsewhere [a]").symlink_to(tree.mirror.path.parent)
    guard = hooks.checkout_environment(folder, tmp_path / "elsewhere [a]" / tree.mirror.path.name)
    environment = {**guard, "PATH": f"{os.environ['PATH']}:{folder}"}
    before = origin.git("for-each-ref")
    for words in (("origin", "HEAD:main"), ("--no-verify", str(origin.path), "+HEAD:refs/heads/x")):
        Folder(tree.path).git("push", *words, check=False, environment=environment)
    assert before == origin.git("for-each-ref")
    assert [
        f"push of HEAD to refs/heads/main of {origin.path}",
        f"push of HEAD to refs/heads/x of {origin.path} by force",
    ] == (hooks.refused_pushes(folder))
    elsewhere = tmp_path / "elsewhere.git"
    ada.git("init", "-q", "--bare", str(elsewhere))
    ada.git("push", "-q", str(elsewhere), "HEAD:main", environment=environment)
    assert ada.git("ls-remote", str(elsewhere), "main")


# what a push meets


@pytest.fixture
def pushed_from(tree: Worktree, folder: Path) -> dict[str, str]:
    """The environment of a run with a commit to push."""
    hooks.write(folder, TRAILERS)
    committed(tree, folder, "-m", "Work")
    environment = hooks.run_environment(folder, BOT)
    return {**environment, "PATH": f"{os.environ['PATH']}:{folder}"}


@pytest.mark.parametrize(
    "words",
    [
        ("push", "origin", "HEAD:main"),
        ("push", "--force", "--no-verify", "origin", "+HEAD:refs/heads/main"),
        ("push", "--mirror", "origin"),
        ("push", "--all", "origin"),
        ("push", "origin", "--delete", "main"),
        ("-c", "core.hooksPath=/dev/null", "push", "ORIGIN", "HEAD:refs/heads/new"),
        ("-c", "remote.origin.url=ORIGIN", "push", "origin", "HEAD:x"),
        ("-c", "remote.origin.pushurl=ORIGIN", "push", "origin", "HEAD:x"),
        ("-c", "url.ORIGIN.insteadOf=abbreviated", "push", "abbreviated", "HEAD:x"),
    ],
)
def test_no_push_from_inside_a_run_arrives(
    tree: Worktree, folder: Path, origin: Folder, pushed_from: dict[str, str], words: tuple[str, ...]
) -> None:
    before = origin.git("for-each-ref")
    words = tuple(word.replace("ORIGIN", str(origin.path)) for word in words)
    done = subprocess.run(
        ["git", *words], cwd=tree.path, env={**os.environ, **pushed_from}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert before == origin.git("for-each-ref")
    assert hooks.refused_pushes(folder) or "--delete" in words, done.stderr


def test_what_was_tried_is_told_in_words(
    tree: Worktree, folder: Path, origin: Folder, pushed_from: dict[str, str]
) -> None:
    for words in (("--no-verify", "origin", "+HEAD:refs/heads/main"), ("origin", "HEAD:new")):
        subprocess.run(
            ["git", "push", *words], cwd=tree.path, env={**os.environ, **pushed_from}, capture_output=True, check=False
        )
    assert hooks.refused_pushes(folder) == [
        f"push of HEAD to refs/heads/main of {origin.path} by force",
        f"push of HEAD to refs/heads/new of {origin.path}",
    ]


def test_a_fetch_works_as_ever(tree: Worktree, origin: Folder, pushed_from: dict[str, str]) -> None:
    done = subprocess.run(
        ["git", "ls-remote", str(origin.path)],
        cwd=tree.path,
        env={**os.environ, **pushed_from},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "refs/heads/main" in done.stdout


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ([], ""),
        ([], "to x\n"),
        (["push of a to b of https://***@host/x"], "to https://u:pw@host/x\na:b\n"),
        (["push of a to b of x"], "to x\na:b\na:b\n"),
        (["push of a to b c of x y z"], "to x\x1b y\u2028z\na:b c\n"),
    ],
)
def test_what_a_run_writes_into_the_list_is_told_as_text(folder: Path, told: list[str], written: str) -> None:
    folder.mkdir()
    (folder / "pushes").write_text(written)
    assert told == hooks.refused_pushes(folder)


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "huge"])
def test_a_list_that_is_none_holds_nobody_up(folder: Path, tmp_path: Path, kind: str) -> None:
    folder.mkdir()
    place = folder / "pushes"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "link":
            place.symlink_to("/etc/passwd")
        case "folder":
            place.mkdir()
        case _:
            place.write_text("to x\n" + "".join(f"a{n}:b\n" for n in range(100_000)))
    assert len(hooks.refused_pushes(folder)) <= 20


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        ("Work [skip ci]", "Work"),
        ("Work [skip ci]", "Work [skip ci]"),
        ("We're $(id) `x` \\n %s [skip ci]", "We're $(id) `x` \\n %s"),
    ],
)
def test_subjects_end_as_configured(tree: Worktree, folder: Path, subject: str, written: str) -> None:
    hooks.write(folder, TRAILERS, suffix="[skip ci]")
    committed(tree, folder, "-m", written, "-m", "Body\nof it")
    message = Folder(tree.path).git("log", "-1", "--format=%B")
    assert message.startswith(f"{subject}\n\nBody\nof it\n\nLeadsman-Run:")
