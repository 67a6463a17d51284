"""The read-only pages: what they show, what they never let through, and that they change nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bot.dashboard import prose
from bot.dashboard.chart import WIDTH, chart
from bot.dashboard.views import Step
from bot.model import Blocked, Cancelled, Failed, Lost, Outcome, Published, RunId, Sha, Unchanged
from bot.slots import PAUSED
from bot.store.schema import deliveries, settings
from tests.bot.local_bench import REPO, bench
from tests.bot.pages_bench import NOW, SECRET, Pages, pages_of

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{7*7}}\u202etxt"
TIP = Sha("ab" * 20)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Pages]:
    made = pages_of(bench(tmp_path))
    yield made
    made.bench.store.close()


class Elements(HTMLParser):
    """The elements of a page with their attributes, as a browser would find them, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.said.append(" ")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self.said.append(" ")

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.said).split())

    def assert_harmless(self) -> None:
        tags = {tag for tag, _ in self.found}
        assert not tags & {"script", "img", "iframe", "object", "embed", "form", "input", "button", "style", "base"}
        for _, attributes in self.found:
            assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}]
            assert not re.match(r"\s*(javascript|data|vbscript|file):", attributes.get("href") or "", re.IGNORECASE)


def shown(site: Pages, path: str) -> str:
    """The text of a page that was looked at and found harmless."""
    elements = Elements(site.get(path))
    elements.assert_harmless()
    return elements.text


# ── what they show ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_board_says_how_to_begin(site: Pages) -> None:
    assert "Nothing has run yet" in shown(site, "/")
    assert "leadsman local init-repo acme/shop" in shown(site, "/")


def test_the_board_tells_what_runs_what_waits_and_why_and_what_came_of_the_rest(site: Pages) -> None:
    live, ended = site.run(task="fix", by="bob"), site.run(task="docs", ago=timedelta(hours=2))
    site.run(task="migrate", ago=timedelta(minutes=1))
    site.reach(live, "start")
    site.end(ended, Published(TIP, "refs/heads/leadsman/publish"), took=timedelta(minutes=4, seconds=10))
    text = shown(site, "/")
    assert "fix running local:acme/shop#1 for 5 min · asked by bob" in text
    assert "1 migrate local:acme/shop#1 no_free_slot: all 4 slots are taken" in text
    assert "published docs local:acme/shop#1 abababababab on leadsman/publish alice 4 min 10 s 1 h ago" in text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Published(TIP, "refs/heads/leadsman/publish"), "published abababababab on leadsman/publish"),
        (Unchanged("The command changed nothing."), "unchanged The command changed nothing."),
        (Failed("verify", "A check does not hold."), "failed A check does not hold. (verify)"),
        (Blocked("a decision"), "blocked it waits for a decision"),
        (Cancelled("alice"), "cancelled by alice"),
        (Lost("the host went away"), "lost the host went away"),
    ],
)
def test_every_outcome_is_named_with_its_reason(site: Pages, outcome: Outcome, said: str) -> None:
    run_id = site.run()
    site.end(run_id, outcome)
    word, _, reason = said.partition(" ")
    assert f"{word} test local:acme/shop#1 {reason}" in shown(site, "/")
    page = shown(site, f"/runs/{run_id}")
    assert word in page
    assert reason in page


def test_a_run_that_was_ended_elsewhere_still_says_how(site: Pages) -> None:
    run_id = site.run()
    site.note(run_id, closed_at=NOW.timestamp() - 60, reason="failed")
    (site.runs_dir / run_id).rmdir()
    assert "failed test" in shown(site, "/")
    assert "Its log and report are not on this host." in shown(site, f"/runs/{run_id}")


def test_a_run_that_another_held_says_so(site: Pages) -> None:
    run_id = site.run()
    site.note(run_id, closed_at=NOW.timestamp() - 60, reason="held by another run")
    assert "held test local:acme/shop#1 held by another run" in shown(site, "/")


def test_a_run_that_is_cancelled_or_outdated_says_so(site: Pages) -> None:
    cancelled, outdated = site.run(), site.run(task="fix")
    for run_id in (cancelled, outdated):
        site.reach(run_id, "start")
    site.note(cancelled, cancel="rita")
    site.note(outdated, outdated="f" * 40)
    assert "asked for by rita" in shown(site, "/")
    assert "Its head was replaced by ffffffffffff." in shown(site, "/")


def test_the_board_says_what_an_operator_should_know(tmp_path: Path) -> None:
    site = pages_of(bench(tmp_path), notices=("The configuration is wrong: line 3",))
    assert "New runs are paused." not in shown(site, "/")
    assert "The configuration is wrong: line 3" in shown(site, "/")
    with site.bench.store.write() as connection:
        connection.execute(settings.insert().values(key=PAUSED, value="alice"))
    assert "New runs are paused." in shown(site, "/")
    site.bench.store.close()


def test_a_runs_page_shows_report_words_log_timeline_and_files(site: Pages) -> None:
    run_id = site.run()
    folder = site.end(run_id, Published(TIP, "refs/heads/leadsman/publish"))
    (folder / "report.md").write_text("**Published** `test`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    (folder / "status.log").write_text("[2026-03-01T11:57:00Z] working: reading\n")
    (folder / "worker.log").write_text("\x1b[32mgreen\x1b[0m\nlast line\n")
    html = site.get(f"/runs/{run_id}")
    assert "<strong>Published</strong> <code>test</code>" in html
    assert "<td>1</td>" in html
    text = shown(site, f"/runs/{run_id}")
    assert "working: reading" in text
    assert "green last line" in text
    assert re.search("Timeline waiting 20 s .* preparing 20 s .* starting 20 s .* running 20 s .* checking 20 s", text)
    assert "report.md 52 B status.log 40 B worker.log 25 B" in text
    assert "starts at 123456789012" in text
    assert f'href="http://127.0.0.1:8780/local/acme/shop/commit/{TIP}"' in html
    assert 'href="http://127.0.0.1:8780/local/acme/shop/1#comment-1"' in html


def test_a_live_page_refreshes_itself_and_a_settled_one_does_not(site: Pages) -> None:
    refresh = '<meta http-equiv="refresh"'
    waits, lives, ends = site.run(), site.run(task="fix"), site.run(task="docs")
    assert refresh not in site.get("/")
    site.reach(lives, "start")
    site.end(ends, Unchanged("nothing"))
    assert refresh in site.get("/")
    assert refresh in site.get(f"/runs/{lives}")
    assert refresh in site.get(f"/runs/{waits}")
    assert refresh not in site.get(f"/runs/{ends}")
    assert refresh not in site.get("/deliveries")


def test_the_thread_of_a_pull_request_is_shown_with_comments_and_reactions(site: Pages) -> None:
    here = site.bench
    tip = here.clone().commit("topic", "a.txt", "a")
    here.people.open_pull(REPO, head="topic", base=None, title="Adds a", author="alice", body="It is *small*.")
    here.people.comment(REPO, 1, author="alice", text="/run test")
    here.forge.react(here.pull(1), "1", "rocket")
    answer = here.forge.post(here.pull(1), "<!-- leadsman answer=x -->\nDone.")
    here.people.label(REPO, 1, "bot", author="alice")
    run_id = site.run()
    html = site.get("/local/acme/shop/1")
    assert f'id="comment-{answer}"' in html
    assert "<em>small</em>" in html
    assert f'href="/runs/{run_id}"' in html
    text = shown(site, "/local/acme/shop/1")
    assert "Adds a #1 open bot acme/shop · pull request by alice · topic into main at " + tip[:10] in text
    assert "/run test done leadsman[bot]" in text
    assert "answer=x" not in text
    said = {"id": answer, "author": "leadsman[bot]", "body": "<!-- leadsman answer=x -->\nDone."}
    assert said == json.loads(site.get(f"/local/acme/shop/1/comments/{answer}"))


def test_a_local_repository_and_its_commits_have_pages(site: Pages) -> None:
    here = site.bench
    tip = here.clone().commit("topic/x", "a.txt", "<b>hello</b>\n")
    here.people.open_issue(REPO, title="Slow tests", author="rita")
    assert "1 open Slow tests issue rita" in shown(site, "/local/acme/shop")
    assert "topic/x " + tip[:10] in shown(site, "/local/acme/shop")
    assert "+<b>hello</b>" in shown(site, f"/local/acme/shop/commit/{tip}")
    assert site.get("/local/acme/shop/branch/topic/x").count(tip) == site.get(f"/local/acme/shop/commit/{tip}").count(
        tip
    )


def test_the_deliveries_are_listed_latest_first(site: Pages) -> None:
    with site.bench.store.write() as connection:
        for number, state in enumerate(("done", "failed")):
            connection.execute(
                deliveries.insert().values(
                    source="local", delivery=f"d{number}", event="comment.created", headers="{}", body=b"", digest="",
                    lane="local:acme/shop", received_at=NOW.timestamp() - 60, state=state, due_at=0, note=EVIL,
                )
            )  # fmt: skip
    text = shown(site, "/deliveries")
    assert text.index("2 failed comment.created local:acme/shop") < text.index("1 done comment.created local:acme/shop")
    assert "1 min ago" in text


# ── what they never let through ──────────────────────────────────────────────────────────────────────────────────────

PAGES = ["/", "/deliveries", "/local/acme/shop", "/local/acme/shop/1", "/runs/{run}", "/nothing/here", "/runs/none"]


def hostile(site: Pages) -> str:
    """Everything that strangers can write holds EVIL; returns a run's id."""
    here = site.bench
    here.people.open_issue(REPO, title=EVIL, author="rita", body=EVIL)
    here.people.comment(REPO, 1, author="alice", text=EVIL)
    here.people.label(REPO, 1, EVIL, author="alice")
    run_id = site.run(line=EVIL, by=EVIL)
    folder = site.end(run_id, Failed("command", EVIL))
    for name in ("report.md", "worker.log", "status.log"):
        (folder / name).write_text(EVIL)
    return run_id


@pytest.mark.parametrize("path", PAGES)
def test_what_strangers_wrote_is_shown_as_text_and_nothing_more(site: Pages, path: str) -> None:
    run_id = hostile(site)
    html = site.client.get(path.format(run=run_id)).text
    elements = Elements(html)
    elements.assert_harmless()
    assert "\u202e" not in html
    assert "49" not in elements.text.replace("2026", "").split()
    if path in {"/local/acme/shop", "/local/acme/shop/1", "/runs/{run}", "/"}:
        assert "<script>alert(1)</script>" in elements.text


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x]( JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "<javascript:alert(1)>",
        "![x](https://evil.example/track.png)",
        '[x](https://a.example "\\" onmouseover=alert(1)")',
        "<details onclick=alert(1)>",
        "<details><script>alert(1)</script></details>",
        "<!-- --><img src=x onerror=alert(1)>",
        "<!--><script>alert(1)</script>-->",
        "<svg/onload=alert(1)>",
        "```\n</code></pre><script>alert(1)</script>\n```",
        '``` "><script>alert(1)</script>\nx\n```',
        "| <script>x</script> |\n|---|\n| <img src=x> |",
        "<style>*{display:none}</style>",
        "<form action=/x><input></form>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_markdown_becomes_nothing_live(text: str) -> None:
    Elements(prose.markdown(text)).assert_harmless()


def test_markdown_keeps_what_makes_a_report_readable() -> None:
    html = prose.markdown("<details><summary>log</summary>\n\n```\nx\n```\n\n</details>\n\n<!-- run=1 -->\n\nend")
    assert html == "<details><summary>log</summary>\n<pre><code>x\n</code></pre>\n</details>\n\n<p>end</p>\n"


def test_a_markdown_text_of_any_size_is_shown_in_bounded_time() -> None:
    import time

    begun = time.process_time()
    for text in ("[" * 60_000, "> " * 30_000, "`" * 60_000, "*a " * 20_000, "<" * 60_000, "x" * 1_000_000):
        assert prose.markdown(text)
    assert time.process_time() - begun < 30


def test_links_do_not_tell_where_they_were_followed_from() -> None:
    assert prose.markdown("[x](https://a.example)") == (
        '<p><a href="https://a.example" rel="nofollow noopener noreferrer">x</a></p>\n'
    )


@pytest.mark.parametrize("path", [*PAGES, "/static/leadsman/leadsman.css", "/runs/{run}/log", "/runs/{run}/files/x"])
def test_every_answer_has_the_headers_that_keep_a_browser_safe(site: Pages, path: str) -> None:
    run_id = hostile(site)
    with site.client.get(path.format(run=run_id)) as answer:
        headers = answer.headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == ("max-age=3600" if path.startswith("/static") else "no-store")
    assert "Set-Cookie" not in headers


def test_no_page_takes_anything_but_a_look(site: Pages) -> None:
    rules = list(site.client.application.url_map.iter_rules())
    assert len(rules) > 10
    assert {method for rule in rules for method in rule.methods or ()} == {"GET", "HEAD", "OPTIONS"}
    for method in ("post", "put", "delete", "patch"):
        assert getattr(site.client, method)("/").status_code == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8780", 200),
        ("127.0.0.1:8780", 200),
        ("192.0.2.7", 200),
        ("[::1]:8780", 200),
        ("leadsman.example.org", 200),
        ("LEADSMAN.example.org", 200),
        ("rebound.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_a_name_that_is_not_ours_is_turned_away(site: Pages, host: str, status: int) -> None:
    assert site.client.get("/", headers={"Host": host}).status_code == status


# ── the files of a run ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def logged(site: Pages) -> tuple[Pages, str, Path]:
    run_id = site.run()
    folder = site.reach(run_id, "start")
    (folder / "worker.log").write_bytes(b"one\ntwo\nthree\n")
    return site, f"/runs/{run_id}", folder


def test_a_log_is_plain_text_whole_or_its_tail(logged: tuple[Pages, str, Path]) -> None:
    site, run, _ = logged
    answer = site.client.get(f"{run}/log")
    assert (answer.status_code, answer.content_type) == (200, "text/plain; charset=utf-8")
    assert (answer.data, answer.content_length) == (b"one\ntwo\nthree\n", 14)
    for lines, expected in ((0, b""), (1, b"three\n"), (2, b"two\nthree\n"), (3, b"one\ntwo\nthree\n")):
        assert site.client.get(f"{run}/log?tail={lines}").data == expected
    for text, expected in (("99", answer.data), ("-1", b""), ("x", answer.data)):
        assert site.client.get(f"{run}/log?tail={text}").data == expected


def test_the_tail_of_a_long_log_is_found_from_its_end(logged: tuple[Pages, str, Path]) -> None:
    site, run, folder = logged
    lines = [f"{number} {'x' * (number % 300)}\n".encode() for number in range(2_000)]
    (folder / "worker.log").write_bytes(b"".join(lines))
    for count in (1, 500, 1_999, 2_000, 3_000):
        assert site.client.get(f"{run}/log?tail={count}").data == b"".join(lines[-count:])
    (folder / "worker.log").write_bytes(b"".join(lines)[:-1])
    assert site.client.get(f"{run}/log?tail=2").data == b"".join(lines)[:-1][-len(lines[-1] + lines[-2]) + 1 :]


@pytest.mark.parametrize(
    ("asked", "status", "data", "content_range"),
    [
        ("bytes=0-2", 206, b"one", "bytes 0-2/14"),
        ("bytes=4-", 206, b"two\nthree\n", "bytes 4-13/14"),
        ("bytes=-6", 206, b"three\n", "bytes 8-13/14"),
        ("bytes=4-999", 206, b"two\nthree\n", "bytes 4-13/14"),
        ("bytes=99-", 416, b"", "bytes */14"),
        ("bytes=0-1,3-4", 200, b"one\ntwo\nthree\n", None),
        ("lines=0-1", 200, b"one\ntwo\nthree\n", None),
        ("bytes=x", 200, b"one\ntwo\nthree\n", None),
    ],
)
def test_a_part_of_a_log_can_be_had(
    logged: tuple[Pages, str, Path], asked: str, status: int, data: bytes, content_range: str | None
) -> None:
    site, run, _ = logged
    answer = site.client.get(f"{run}/log", headers={"Range": asked})
    assert (answer.status_code, answer.data, answer.headers.get("Content-Range")) == (status, data, content_range)
    assert answer.content_length == len(data)


def test_a_log_that_is_not_put_right_yet_is_served_without_its_secrets(logged: tuple[Pages, str, Path]) -> None:
    site, run, folder = logged
    token = "ghp_" + "a" * 36
    text = f"one {token} {SECRET}\n\x1b[31m{token}\x1b[0m https://u:pw@host/\nghp_begun"
    for name in ("worker.log", "status.log", "other.log", "report.md", "changes.patch"):
        (folder / name).write_text(text)
    site.note(RunId(folder.name), reason=f"it said {token} and {SECRET}")
    paths = ["", "/log", "/log?tail=1", "/log?tail=2", "/files/status.log", "/files/other.log", "/files/changes.patch"]
    for path in [*(f"{run}{path}" for path in paths), "/"]:
        shown = site.get(path)
        assert not any(secret in shown for secret in ("aaaa", SECRET, "u:pw", "begun")), path
    answer = site.client.get(f"{run}/log", headers={"Range": "bytes=10-20"})
    assert (206, b"*" * 11) == (answer.status_code, answer.data)


def test_a_report_is_json(logged: tuple[Pages, str, Path]) -> None:
    site, run, folder = logged
    assert site.client.get(f"{run}/report.json").status_code == 404
    (folder / "report.json").write_text('{"payload": "x"}')
    answer = site.client.get(f"{run}/report.json")
    assert (answer.content_type, answer.json) == ("application/json", {"payload": "x"})


@pytest.mark.parametrize("name", ["worker.log", "report.md", "status.log", "report.json"])
def test_a_link_or_a_pipe_in_a_runs_directory_is_not_followed(
    logged: tuple[Pages, str, Path], tmp_path: Path, name: str
) -> None:
    site, run, folder = logged
    (tmp_path / "key").write_text("SECRET")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "key")
    assert "SECRET" not in site.get(run)
    assert site.client.get(f"{run}/files/{name}").status_code == 404
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert site.client.get(f"{run}/files/{name}").status_code == 404
    assert site.client.get(run).status_code == 200


def test_the_logs_of_the_checks_are_among_the_files(logged: tuple[Pages, str, Path], tmp_path: Path) -> None:
    site, run, folder = logged
    check = folder / "checks" / "1-1-53eda0a76411"
    check.mkdir(parents=True)
    (check / "worker.log").write_text("2 passed\n")
    (check / "spec.json").write_text("SECRET")
    assert f'href="{run}/files/checks/{check.name}/worker.log"' in site.get(run)
    assert "2 passed\n" == site.client.get(f"{run}/files/checks/{check.name}/worker.log").text
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "worker.log").write_text("SECRET")
    (folder / "checks" / "linked").symlink_to(elsewhere)
    for name in (f"{check.name}/spec.json", "linked/worker.log", f"../{folder.name}/worker.log", check.name):
        assert 404 == site.client.get(f"{run}/files/checks/{name}").status_code, name
    assert "linked" not in site.get(run)


@pytest.mark.parametrize(
    "name",
    ["spec.json", "status.json", "alive.lock", "control", "intent.json", "..%2f..%2fleadsman.db", "%2e%2e", ".x.log"],
)
def test_what_is_not_for_people_is_not_served(logged: tuple[Pages, str, Path], name: str) -> None:
    site, run, folder = logged
    for path in ("spec.json", "status.json", "intent.json", ".x.log"):
        (folder / path).write_text('{"env": {"TOKEN": "SECRET"}}')
    answer = site.client.get(f"{run}/files/{name}")
    assert answer.status_code == 404
    assert "SECRET" not in answer.text
    assert "spec.json" not in site.get(run)


NOWHERE = [
    "/runs/20260301-000000-ffffff",
    "/runs/..",
    "/runs/%2e%2e%2f%2e%2e/log",
    "/runs/x/log",
    "/runs/x/report.json",
    "/local/acme/none",
    "/local/..%2f../x",
    "/local/acme/shop/99",
    "/local/acme/shop/0",
    "/local/acme/shop/99999999999999999999999",
    "/local/acme/shop/commit/--help",
    "/local/acme/shop/commit/HEAD",
    "/local/acme/shop/commit/" + "0" * 40,
    "/local/acme/shop/branch/none",
]


@pytest.mark.parametrize("path", NOWHERE)
def test_what_is_not_there_is_a_404_in_plain_words(site: Pages, path: str) -> None:
    assert site.client.get(path).status_code == 404


def test_a_store_that_can_not_be_read_is_a_503_that_says_so(site: Pages) -> None:
    with site.bench.store.write() as connection:
        connection.exec_driver_sql("DROP TABLE runs")
    answer = site.client.get("/")
    assert answer.status_code == 503
    assert "The store can&#39;t be read: no such table: runs" in answer.text


# ── times and bars ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"), (0.9, "0 s"), (59, "59 s"), (60, "1 min"), (185, "3 min 5 s"), (3_600, "1 h"),
        (7_800, "2 h 10 min"), (90_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_a_duration_is_said_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert prose.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.04, "0.0 s"), (0.26, "0.3 s"), (9.9, "9.9 s"), (10, "10 s"), (61.5, "1 min 1 s")],
)
def test_what_was_quick_is_told_in_tenths(seconds: float, text: str) -> None:
    assert prose.took(seconds) == text


def test_the_blank_by_which_the_bot_mentions_nobody_is_not_shown() -> None:
    assert prose.markdown("#\u200b7 by @\u200balice") == "<p>#7 by @alice</p>\n"


def test_the_bars_of_a_timeline_stay_on_their_line_and_share_one_scale() -> None:
    at = [NOW + timedelta(seconds=seconds) for seconds in (0, 50, 100)]
    bars = chart([Step("a", at[0], at[1]), Step("b", at[1], at[1]), Step("c", at[1], None)], at[2])
    assert [(bar.left, bar.width) for bar in bars] == [(0, 500), (500, 4), (500, 500)]
    assert all(bar.left + bar.width <= WIDTH for bar in chart([Step("a", NOW, NOW), Step("b", NOW, NOW)], NOW))
    assert chart([], NOW) == []
