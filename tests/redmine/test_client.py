"""The bot's client against a real Redmine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from bot.errors import Forbidden, Gone, Unavailable
from bot.model import Actor, Permission
from tests.redmine.site import Site, client

pytestmark = pytest.mark.needs("redmine")


def test_a_ticket_is_read_whole(site: Site) -> None:
    number = site.ticket("Mend *it*", description="a\nb", category="backend", priority="High", assigned_to="devi")
    site.change(number, status="In Progress", notes="on it")
    site.change(number, who="devi", notes="hm", private_notes=True)
    ticket = client(site).ticket(site.ref(number))
    assert (ticket.title, ticket.text, ticket.author.login) == ("Mend *it*", "a\nb", "dana")
    assert (ticket.status, ticket.category, ticket.is_closed) == ("In Progress", "backend", False)
    assert ticket.assignee is not None
    assert ticket.assignee.login == "devi"
    first, second = ticket.journal
    assert (first.author.login, first.text, first.old_status, first.new_status) == (
        "dana",
        "on it",
        "New",
        "In Progress",
    )
    assert (second.author.login, second.private, second.new_status) == ("devi", True, None)
    assert abs(first.at - datetime.now(UTC)) < timedelta(seconds=30)
    assert ticket.allowed == {"In Progress", "Resolved", "New", "Code Review"}


def test_the_journal_is_in_the_trackers_order_whatever_the_users_preference(site: Site) -> None:
    number = site.ticket()
    for word in ("one", "two", "three"):
        site.change(number, notes=word)
    raw = site.call("bot3", "get", f"issues/{number}.json?include=journals").json()["issue"]["journals"]
    assert raw[0]["notes"] == "three"
    assert [entry.text for entry in client(site, "bot3").ticket(site.ref(number)).journal] == ["one", "two", "three"]


def test_a_status_that_the_workflow_forbids_is_seen_in_what_is_read_back(site: Site) -> None:
    number = site.ticket()
    after = client(site).put(site.ref(number), "I close it.", status="Closed")
    assert after.status == "New"
    assert after.journal[-1].text == "I close it."


def test_a_write_changes_status_and_note_and_link_at_once(site: Site) -> None:
    number = site.ticket()
    bot = client(site, run_link_field="Run")
    after = bot.put(site.ref(number), "mine", status="In Progress", link="http://127.0.0.1:1/runs/x")
    assert after.status == "In Progress"
    assert len(after.journal) == 1
    fields = {field["name"]: field["value"] for field in site.seen(number)["custom_fields"]}
    assert fields["Run"] == "http://127.0.0.1:1/runs/x"


def test_a_status_that_the_site_does_not_have_is_named(site: Site) -> None:
    with pytest.raises(Forbidden, match='names the status "Doing"'):
        client(site).put(site.ref(site.ticket()), "", status="Doing")


def test_a_private_note_is_refused_without_the_right_and_nothing_becomes_public(site: Site) -> None:
    number = site.ticket()
    client(site).put(site.ref(number), "for few", private=True)
    with pytest.raises(Forbidden, match="may not set that"):
        client(site, "quiet").put(site.ref(number), "for few, too", private=True)
    assert [(j["notes"], j["private_notes"]) for j in site.seen(number)["journals"]] == [("for few", True)]


def test_each_failure_has_its_answer(site: Site) -> None:
    bot = client(site)
    with pytest.raises(Gone):
        bot.ticket(site.ref(999_999))
    with pytest.raises(Forbidden):
        bot.ticket(site.ref(site.facts["hidden"]))
    with pytest.raises(Forbidden, match="API key"):
        client(site, key="0" * 40).whoami()
    with pytest.raises(Forbidden, match="403"):
        client(site).write(site.ref(site.facts["hidden"]), "hello")


def test_a_wrong_key_that_reads_a_public_site_is_told_by_whoami_and_before_a_scan(site: Site) -> None:
    number = site.ticket()
    stranger = client(site, key="0" * 40)
    assert stranger.ticket(site.ref(number)).status == "New"
    with pytest.raises(Forbidden):
        stranger.whoami()
    with pytest.raises(Forbidden, match="API key"):
        stranger.claimable("demo")
    with pytest.raises(Unavailable, match="API key"):  # what is owed to a ticket waits until it is renewed
        stranger.write(site.ref(number), "# REPORT - run")


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """Somebody who is no Redmine: says `answer` to everyone, or nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    if answer is not None:
                        connection.recv(65536)
                        connection.sendall(answer)
                        connection.close()
                    else:
                        held.append(connection)
            except OSError:
                return

        held: list[socket.socket] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


def http(status: str, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http("500 Internal Server Error", ""), Unavailable),
        (http("502 Bad Gateway", "<html>"), Unavailable),
        (http("503 Service Unavailable", ""), Unavailable),
        (http("429 Too Many Requests", ""), Unavailable),
        (http("409 Conflict", ""), Unavailable),
        (http("422 Unprocessable Entity", '{"errors":[]}'), Unavailable),
        (http("422 Unprocessable Entity", '{"errors":["Status ist leer"]}'), Forbidden),
        (http("422 Unprocessable Entity", "<html>"), Unavailable),
        (http("200 OK", "<html>login</html>"), Unavailable),
        (http("200 OK", "[]"), Unavailable),
        (http("200 OK", '{"issue":{}}'), Unavailable),
        (http("302 Found", "", "Location: http://127.0.0.1:9/"), Unavailable),
        (http("410 Gone", ""), Gone),
        (http("406 Not Acceptable", ""), Forbidden),
        (b"nonsense", Unavailable),
        (None, Unavailable),
    ],
)
def test_what_is_no_answer_of_redmines_is_told_apart(site: Site, answer: bytes | None, error: type[Exception]) -> None:
    with answering(answer) as url:
        bot = client(site, url=url, timeout_seconds=1)
        with pytest.raises(error):
            bot.ticket(site.ref(1))


def test_a_redirect_takes_the_key_nowhere(site: Site) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as thief:
        thief.settimeout(0.5)
        port = thief.getsockname()[1]
        away = http("302 Found", "", f"Location: http://127.0.0.1:{port}/")
        with answering(away) as url, pytest.raises(Unavailable):
            client(site, url=url).whoami()
        with pytest.raises(TimeoutError):
            heard.append(thief.accept()[0].recv(1000))
    assert heard == []


@pytest.mark.parametrize(
    ("who", "right"),
    [
        ("admin", Permission.ADMIN),
        ("dana", Permission.WRITE),
        ("rea", Permission.READ),
        ("otto", Permission.READ),
        ("bot", Permission.WRITE),
    ],
)
def test_rights_come_from_the_roles_in_the_project(site: Site, who: str, right: Permission) -> None:
    ref = site.ref(site.ticket())
    assert client(site).permission(ref, Actor(who, str(site.facts["users"][who]))) == right
    assert client(site).permission(ref, Actor("nobody", "987654")) == Permission.NONE
    assert client(site).permission(ref, Actor("anonymous", "")) == Permission.NONE


def test_claimable_tickets_come_by_priority_then_age_over_several_pages(site: Site) -> None:
    old = [site.ticket(f"normal {n}") for n in range(27)]
    urgent, low = site.ticket("now", priority="Urgent"), site.ticket("some day", priority="Low")
    site.change(site.ticket("at work"), status="In Progress")
    found = [ticket.ref.number for ticket in client(site).claimable("demo")]
    assert found[0] == urgent
    assert found[-1] == low
    assert sorted(found[1:-1]) == old


def test_a_note_holds_nothing_that_mails_or_links(site: Site) -> None:
    number = site.ticket()
    bot = client(site)
    bot.post(site.ref(number), "Hello @dana, see #1 and `@devi`, {{include(Start)}}\0\ud800")
    (note,) = site.notes(number)
    assert "@\u200bdana" in note
    assert "@\u200bdevi" in note
    assert "\0" not in note
    page = site.page(number)
    assert 'href="/issues/1"' not in page
    assert "include" in page
    assert "{{include" not in note


def test_a_comment_is_found_again_by_what_it_says(site: Site) -> None:
    number = site.ticket()
    bot = client(site)
    said = bot.post(site.ref(number), "Two lines,\nas written.")
    (comment,) = bot.comments(site.ref(number))
    assert comment.id == said
    assert comment.author.id == bot.me().id
    assert bot.is_ours(comment.body, "Two lines,\nas written.")
    assert not bot.is_ours(comment.body, "Other lines.")


def test_a_private_note_is_no_comment(site: Site) -> None:
    number = site.ticket()
    site.change(number, notes="/run fix", private_notes=True)
    (journal,) = site.seen(number)["journals"]
    with pytest.raises(Gone):
        client(site).comment(site.ref(number), str(journal["id"]))


@pytest.mark.needs("postgresql")
def test_two_writes_at_once_are_told_as_a_collision_and_never_as_success(parallel_site: Site) -> None:
    number = parallel_site.ticket()
    outcomes: list[str] = []
    barrier = threading.Barrier(8)

    def write(n: int) -> None:
        bot = client(parallel_site, ("bot", "bot2")[n % 2])
        barrier.wait(60)
        for _ in range(5):
            try:
                bot.write(parallel_site.ref(number), f"note {n}")
                outcomes.append("written")
            except Unavailable as problem:
                outcomes.append("collided" if "same moment" in str(problem) else str(problem))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes) == {"written", "collided"}
    assert outcomes.count("written") == len(parallel_site.notes(number))
