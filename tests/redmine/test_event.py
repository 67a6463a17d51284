"""`leadsman event` works the body of a Redmine's webhook from a file, to its end, without a server."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.redmine.test_commands import leadsman
from tests.redmine.test_doors import native, plugin
from tests.redmine.town import TicketTown

pytestmark = pytest.mark.needs("redmine")


def event(town: TicketTown, body: bytes, *more: str) -> CompletedProcess[str]:
    file: Path = town.folder / "ticket.json"
    file.write_bytes(body)
    return leadsman(town, "event", str(file), "--source", "work", *more)


def noted(town: TicketTown, number: int, text: str, **more: bool) -> int:
    """The id of a new note."""
    town.site.change(number, notes=text, **more)
    return int(town.site.seen(number)["journals"][-1]["id"])


def test_a_note_is_worked_to_its_end_and_only_once_and_no_other_note_is(town: TicketTown) -> None:
    repo = town.shop()
    number = town.site.ticket()
    noted(town, number, "/run fix -- an earlier note, which this event does not tell of")
    body = native(number, id=noted(town, number, "/run fix"))
    done = event(town, body)
    (run,) = town.runs()
    assert (0, f"{run.name} fix work:{number}: published\n", "") == (done.returncode, done.stdout, done.stderr)
    assert "Resolved" == town.site.status(number)
    assert 1 == len(town.run_branches(repo))
    again = event(town, body)
    assert (0, "No run was started.\n") == (again.returncode, again.stdout)
    assert "was worked before" in again.stderr
    assert [run] == town.runs()


def test_a_new_ticket_fires_its_rule(town: TicketTown) -> None:
    town.shop()
    town.config += '\n[[rule]]\non = "redmine.issue.created"\ntask = "fix"\n'
    number = town.site.ticket()
    done = event(town, native(number, "issue.created").replace(b'"journal"', b'"nothing"'))
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.endswith(f" fix work:{number}: published\n")


def test_what_is_no_news_is_said_to_be_none(town: TicketTown) -> None:
    town.shop()
    number = town.site.ticket()
    private = noted(town, number, "/run fix", private_notes=True)
    for body, said in (
        (native(number, id=private), "ignored: there is no such entry of a ticket of ours, or it is private"),
        (native(number, id=987_654), "ignored: there is no such entry of a ticket of ours"),
        (native(number, "issue.deleted"), "ignored: 'issue.deleted' asks nothing of the bot"),
        (plugin(number).replace(b'"journal"', b'"nothing"'), "ignored: it names no journal entry"),
    ):
        done = event(town, body)
        assert (0, True) == (done.returncode, done.stdout.startswith(said)), done
    assert [] == town.runs()


def test_what_can_not_be_worked_is_refused_with_the_next_step(town: TicketTown) -> None:
    town.shop()
    for body, more, said in (
        (b"[]", (), "ticket.json is no webhook of work: a JSON object is needed"),
        (b'{"type": "issue.updated", "data": {}}', (), "is no webhook of work: data.issue is missing"),
        (b"{}", ("--source", "elsewhere"), "no [trackers.elsewhere] in the configuration. Known: github, work."),
        (b"{}", ("--source", "github"), "--event issue_comment"),
    ):
        done = event(town, body, *more)
        assert (2, True) == (done.returncode, said in done.stderr), done
