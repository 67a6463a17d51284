"""A spare worktree is prepared behind a run, becomes the next one's, and goes with its repository's configuration."""

from __future__ import annotations

from pathlib import Path

from tests.stories.test_fleet import answer, leadsman, waiter
from tests.stories.town import Town


def spares(town: Town) -> list[Path]:
    return sorted((town.home / "spares").glob("*/*/spare-*"))


def ready(town: Town, count: int) -> list[Path]:
    """The spares, once so many are complete: the server says so after it."""

    def look() -> list[Path] | None:
        return spares(town) if town.journal().count('"event": "spare"') >= count else None

    return town.until(f"{count} spares were made ready", look)


def test_a_spare_becomes_the_next_runs_worktree_and_a_fresh_one_follows(town: Town) -> None:
    repo, go = town.repo(), town.folder / "go"
    town.task("wait", waiter(town, go))
    pull = town.pull_of(repo)
    town.start()
    assert spares(town) == []  # nobody has used it yet
    town.says(pull, "/run fix")
    answer(town, pull, "**Published** `fix`")
    (spare,) = ready(town, 1)
    assert (spare / "README.md").read_text() == "hello\n"
    assert not (spare / "topic.txt").exists()  # it stands at the base
    inode = (spare / "README.md").stat().st_ino
    town.says(pull, "/run wait")
    (tree,) = town.until("it runs", lambda: list((town.home / "worktrees").glob("*/topic.txt")) or None)
    assert inode == tree.with_name("README.md").stat().st_ino
    (fresh,) = ready(town, 2)
    assert (fresh / "README.md").stat().st_ino != inode
    go.touch()
    answer(town, pull, "**Published** `wait`")
    town.until("both are closed", lambda: town.closed(2))
    town.assert_nothing_is_left(repo)


def test_spares_are_found_refreshed_and_removed_at_the_start(town: Town) -> None:
    repo = town.repo()
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    answer(town, pull, "**Published** `fix`")
    (spare,) = ready(town, 1)
    town.until("the run is closed", town.closed)
    town.stop()
    (spare / ".git").unlink()  # damaged
    stray = spare.with_name("spare-7")
    stray.mkdir()
    town.start()
    assert [spare] == ready(town, 2)
    assert (spare / ".git").is_file()
    assert not stray.exists()
    town.config = town.config.replace("[fleet]", "[fleet]\nspares = 0")
    (town.folder / "leadsman.toml").write_text(town.config)
    assert leadsman(town, "reload").code == 0
    town.until("they are gone", lambda: spares(town) == [] and not list((town.home / "spares").glob("*/*")))


def test_a_spare_does_not_survive_the_configuration_of_its_repository(town: Town) -> None:
    repo = town.repo()
    town.repo("acme/other")
    pull = town.pull_of(repo)
    town.start()
    town.says(pull, "/run fix")
    answer(town, pull, "**Published** `fix`")
    ready(town, 1)
    town.until("the run is closed", town.closed)
    project = '\n[[project]]\nname = "acme-shop"\nforge = "github"\nrepository = "acme/shop"\n'
    assert project in town.config
    town.config = town.config.replace(project, "\n")
    (town.folder / "leadsman.toml").write_text(town.config)
    assert leadsman(town, "reload").code == 0
    town.until("it is gone", lambda: spares(town) == [])
