"""`[fleet.repo_map]`: a ticket's category, or how its number begins, says in which repository it is worked."""

from __future__ import annotations

import pytest

from bot.fleet import RepoMap
from bot.model import Repo
from tests.redmine.test_commands import leadsman
from tests.redmine.test_scan import RULE
from tests.redmine.town import TicketTown

SHOP, BACK, TWELVE = (Repo("github", f"acme/{name}") for name in ("shop", "back", "twelve"))


@pytest.mark.parametrize(
    ("repo", "number", "category"),
    [
        (SHOP, 7, None),
        (SHOP, 7, "frontend"),
        (BACK, 7, "backend"),
        (BACK, 7, "BackEnd"),
        (TWELVE, 12, None),
        (TWELVE, 1299, None),
        (SHOP, 112, None),
        (BACK, 12, "backend"),
        (BACK, 124, "frontend"),
    ],
)
def test_the_category_decides_then_the_longest_beginning_then_the_project(
    repo: Repo, number: int, category: str | None
) -> None:
    entries = {"backend": BACK, "12": TWELVE, "124": BACK}
    assert repo == RepoMap(entries).repository(number, category, default=SHOP)


@pytest.mark.needs("redmine")
def test_a_ticket_is_worked_in_the_repository_of_its_category(town: TicketTown) -> None:
    shop, back = town.shop(), town.repo("acme/back")
    town.config = town.config.replace("[fleet]", '[fleet]\nrepo_map = { backend = "acme/back" }')
    town.config += RULE.format(task="fix")
    plain, mapped = town.site.ticket("one"), town.site.ticket("two", category="backend")
    done = leadsman(town, "scan", "--once")
    assert done.returncode == 0, done.stderr
    assert ["Resolved", "Resolved"] == [town.site.status(number) for number in (plain, mapped)]
    assert [1, 1] == [len(town.run_branches(repo)) for repo in (shop, back)]
    assert back.sha("main") in town.note(mapped, "# REPORT -")
    assert shop.sha("main") in town.note(plain, "# REPORT -")
    for repo in (shop, back):
        town.assert_nothing_is_left(repo)
