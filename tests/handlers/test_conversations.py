"""What people say to the bot, and what it answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.errors import Forbidden, Gone, Unavailable
from bot.model import Command, Commented, Ignored, IssueRef, Permission, Repo, RunId, TicketRef
from bot.passview import Passes
from bot.recheck import Finding
from bot.tasks import Task
from handlers import permission
from handlers.commands import COMMANDS
from handlers.decision import Approve, Decision, Hold, Resume, Start, Stop, TakenBack, Unhold
from handlers.grammar import Words, commands_in
from handlers.record import RunRecord
from handlers.views import HoldView, HostView, KnownTask
from tests.handlers.desk import HEAD, ISSUE, MAIN, NEWER, NOW, PULL, REPO, Room, actor

RUN_USAGE = "/run TASK [WORDS...] [sha=<40 hex>] [difficulty=<name>] [-- WORDS...]"


@pytest.fixture
def room() -> Room:
    return Room()


def started(room: Room) -> Start:
    (start,) = (result for result in room.results if isinstance(result, Start))
    return start


# /run


def test_a_run_starts_at_the_head_that_the_forge_shows(room: Room) -> None:
    assert room.says("will", "Please:\n/run fix a 'b c' difficulty=hard -- --all sha=x") == (
        "Run `20260301-120000-a00001` of `fix` waits at place 1: no slot is free. This comment tells how it goes on."
    )
    intent = started(room).intent
    assert HEAD == intent.head
    assert "the head of #7 when the bot acted" == intent.head_why
    assert ("a", "b c", "--all", "sha=x") == intent.args
    assert "main" == intent.base_ref
    assert "leadsman.toml" == intent.trusted_from
    assert Command("/run fix a 'b c' difficulty=hard -- --all sha=x") == intent.reason
    assert 5 == intent.limit.turns
    assert actor("will") == intent.event.actor
    assert 0 == intent.ordinal


def test_a_run_on_an_issue_starts_at_the_projects_base(room: Room) -> None:
    room.says("will", "/run fix", on=ISSUE)
    intent = started(room).intent
    assert (MAIN, "main") == (intent.head, intent.base_ref)
    assert "the head of main, the project's base, when the bot acted" == intent.head_why
    room.base, room.branches = "next", {"next": NEWER}
    room.says("will", "/run fix", on=ISSUE)
    assert (NEWER, "next") == (started(room).intent.head, started(room).intent.base_ref)


def test_a_commit_that_is_named_must_be_the_head(room: Room) -> None:
    assert room.says("will", f"/run fix 'a b' sha={NEWER} -- -v") == (
        f"`ref_changed`: nothing was started. You asked for `{NEWER}`; the head of `#7` is `{HEAD}` now. "
        "Look at what changed, then ask for it:\n\n"
        f"```\n/run fix 'a b' sha={HEAD} -- -v\n```"
    )
    room.says("will", f"/run fix sha={HEAD.upper()}")
    assert "the head of #7 when the bot acted, as sha= asked" == started(room).intent.head_why
    assert "`ref_changed`" in room.says("will", f"/run fix sha={HEAD}", on=ISSUE)


def test_a_head_that_moved_after_the_comment_was_made_is_not_run(room: Room) -> None:
    room.seen[PULL] = [(NOW - timedelta(hours=1), HEAD), (NOW + timedelta(seconds=1), NEWER)]
    room.pushes(NEWER)
    assert room.says("will", "/run fix") == (
        f"`ref_changed`: nothing was started. When you wrote, the head of `#7` was `{HEAD}`; "
        f"the head of `#7` is `{NEWER}` now. Look at what changed, then ask for it:\n\n"
        f"```\n/run fix sha={NEWER}\n```"
    )
    room.says("will", f"/run fix sha={NEWER}")
    assert NEWER == started(room).intent.head


def test_a_head_that_the_delivery_showed_and_that_moved_is_not_run(room: Room) -> None:
    room.says("will", "hello")
    room.said["1"] = replace(room.said["1"], body="/run fix")
    said = room.happens(Commented("1", actor("will"), "/run fix", None), PULL, head=NEWER)
    assert said.startswith("`ref_changed`")
    room.happens(Commented("1", actor("will"), "/run fix", None), PULL, head=HEAD)
    assert not room.results  # the same command was answered already


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            "/run fxi",
            "There is no task `fxi` here. Did you mean `fix`? There are `fix`, `test`.",
        ),
        (
            "/run fix sha=aaaaaaa",
            (
                "`aaaaaaa` is not a full commit id. Copy all 40 digits from the commit that you looked at: another one "
                "with the same first digits can be made on purpose."
            ),
        ),
        (
            "/run fix sha=bbbbbbb",
            (
                "`bbbbbbb` is not a full commit id. Copy all 40 digits from the commit that you looked at: another one "
                "with the same first digits can be made on purpose."
            ),
        ),
        (
            "/run fix sha=main",
            (f"`sha` can't be `main`: it takes a full commit id (40 hex digits). Usage: `{RUN_USAGE}`"),
        ),
        (
            "/run fix difficulty=hrd",
            'There is no difficulty "hrd", did you mean "hard"? Known ones are easy, medium, hard, diploma.',
        ),
        (
            "/run fix dificulty=hard",
            (
                "There is no argument `dificulty` here. Did you mean `difficulty`? What the task itself is to get goes "
                f"behind `--`. Usage: `{RUN_USAGE}`"
            ),
        ),
        (
            "/run",
            f"`TASK` is missing. Usage: `{RUN_USAGE}`",
        ),
        (
            "/run fix sha=",
            f"`sha` has no value. Usage: `{RUN_USAGE}`",
        ),
        (
            "/run fix sha=1 sha=2",
            (f"`sha` is given twice; leave one out. Usage: `{RUN_USAGE}`"),
        ),
        (
            "/run fix 'a",
            "A quote is opened and never closed. Close it, or write `\\'` or `\\\"` for a plain quotation mark.",
        ),
        (
            "/run fi\u202ex",
            (
                "This line holds characters that can't be seen (U+202E RIGHT-TO-LEFT OVERRIDE), so what runs could "
                "differ from what is read. Type it again by hand."
            ),
        ),
        ("/leadsman rn", "There is no command `rn`. Did you mean `run`? `/help` lists what there is."),
        ("@leadsman", "No command stands behind my name. `/help` lists what there is."),
        ("/tasks now", "There is no argument `now` here. Usage: `/tasks`"),
    ],
)
def test_what_cannot_be_understood_is_answered_with_the_next_step(room: Room, line: str, answer: str) -> None:
    assert answer == room.says("will", line)
    assert not any(isinstance(result, Start) for result in room.results)


@pytest.mark.parametrize(("merged", "word"), [(False, "closed"), (True, "merged")])
def test_a_closed_pull_request_runs_nothing(room: Room, merged: bool, word: str) -> None:
    room.closes(merged=merged)
    assert room.says("will", "/run fix") == f"Pull request 7 is {word}, so nothing was started. Reopen it first."


def test_a_forks_commit_runs_only_after_exactly_it_was_approved(room: Room) -> None:
    room.forks()
    assert room.says("ann", "/run fix") == (
        f"Pull request 7 comes from a fork, and nobody approved its commit `{HEAD}` yet. "
        "Somebody with write permission reads that commit, posts this, and asks for the run again:\n\n"
        f"```\n/ok-to-test {HEAD}\n```"
    )
    assert room.says("tria", f"/ok-to-test {HEAD}").startswith("`/ok-to-test` needs **write** permission")
    too_short = room.says("will", f"/ok-to-test {HEAD[:12]}")
    assert too_short.startswith(f"`{HEAD[:12]}` is not a full commit id.")
    assert HEAD not in too_short  # what stands there now may have been made to begin like the commit that was read
    assert room.says("will", f"/ok-to-test {NEWER}") == (
        f"`ref_changed`: nothing was approved. `{NEWER}` is not the head of `#7`; that is `{HEAD}` now. "
        f"Read that commit, then approve it:\n\n```\n/ok-to-test {HEAD}\n```"
    )
    assert not room.approvals
    assert room.says("will", f"/ok-to-test {HEAD}") == (
        f"Runs may start on commit `{HEAD}` of pull request 7. A new commit needs a new approval."
    )
    assert Approve(REPO, HEAD, actor("will")) in room.results
    room.says("ann", "/run fix")
    assert HEAD == started(room).intent.head
    room.pushes(NEWER)
    assert room.says("ann", "/run fix").startswith("Pull request 7 comes from a fork")


def test_an_approval_counts_for_the_command_below_it(room: Room) -> None:
    room.forks()
    room.says("will", f"/run fix\n/ok-to-test {HEAD}\n/run fix")
    assert 2 == started(room).intent.ordinal


def test_a_fork_that_was_deleted_is_still_a_fork(room: Room) -> None:
    room.pulls[PULL] = replace(room.pulls[PULL], head_repo=None)
    assert "comes from a fork" in room.says("ann", "/run fix")


def test_an_approval_has_no_place_where_there_is_no_fork(room: Room) -> None:
    assert room.says("will", f"/ok-to-test {HEAD}") == (
        "Pull request 7 does not come from a fork, so its commits need no approval. `/run` works right away."
    )
    assert room.says("will", f"/ok-to-test {HEAD}", on=ISSUE) == "`/ok-to-test` is for pull requests. Post it there."
    assert not room.approvals


# Permission


@pytest.mark.parametrize("who", ["stranger", "rea", "tria", "will", "ann"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_for_those_with_its_permission(room: Room, name: str, who: str) -> None:
    command = COMMANDS[name]
    room.says("ann", "/run test")
    said = room.says(who, f"/{name} {'x' if command.takes.needed else ''}")
    has = room.people.get(who, Permission.NONE)
    refused = f"`/{name}` needs **{command.needs.name.lower()}** permission in this repository"
    assert (has < command.needs) == said.startswith(refused)


def test_a_refusal_says_what_is_needed_and_what_one_has(room: Room) -> None:
    assert room.says("tria", "/run fix") == (
        "`/run` needs **write** permission in this repository; `tria` has **triage**. "
        "Somebody with write permission can post it."
    )
    assert room.says("stranger", "/tasks") == (
        "`/tasks` needs **read** permission in this repository; `stranger` has **none**. "
        "Somebody with read permission can post it."
    )


def test_permission_is_read_when_the_bot_acts(room: Room) -> None:
    room.people["will"] = Permission.READ
    assert "needs **write**" in room.says("will", "/run fix")
    room.people["will"] = Permission.WRITE
    room.says("will", "/run fix")
    assert HEAD == started(room).intent.head


def test_somebody_of_whom_the_forge_knows_nothing_has_no_permission(room: Room) -> None:
    room.failing["permission"] = Gone("404")
    room.time += timedelta(hours=1)
    assert "has **none**" in room.says("will", "/run fix")


def test_who_asked_for_a_run_may_cancel_and_retry_it(room: Room) -> None:
    room.says("rea", "/cancel")
    room.people["rea"] = Permission.WRITE
    room.says("rea", "/run fix")
    room.people["rea"] = Permission.READ
    room.says("will", "/run test")
    mine, theirs = (row.run_id for row in room.rows)
    assert room.says("rea", f"/cancel {theirs}").startswith(
        "`/cancel` needs **write** permission in this repository, or"
    )
    assert room.says("rea", "/cancel") == (
        f"Run `{mine}` of `fix` is being cancelled. Its report says when nothing of it is left."
    )
    assert Stop(RunId(mine), actor("rea"), "/cancel in a comment") in room.results
    room.ends(theirs)
    assert "waits" in room.says("rea", "/retry")
    assert "fix" == started(room).intent.task.name


def test_a_login_that_was_taken_over_is_not_who_asked(room: Room) -> None:
    room.says("will", "/run fix")
    room.rows[0] = replace(
        room.rows[0],
        intent=replace(
            room.rows[0].intent, event=replace(room.rows[0].intent.event, actor=replace(actor("rea"), id="id-old"))
        ),
    )
    assert room.says("rea", "/cancel").startswith("`/cancel` needs **write** permission")


def test_having_asked_for_a_run_gives_no_right_that_the_command_does_not_give(room: Room) -> None:
    room.says("will", "/run fix")
    (run,) = room.rows
    for command in COMMANDS.values():
        allowed = permission.check(command, Permission.NONE, actor("will"), run) is None
        assert (command.name in {"help", "cancel", "resume", "retry"}) == allowed


# Following runs


def test_status_lists_the_runs_and_why_they_wait(room: Room) -> None:
    assert room.says("rea", "/status") == (
        "No run was asked for here yet. `/run` with a task's name starts one; `/tasks` lists them.\n\n"
        "On this host 1 of 4 slots are held (2 at most so far), 3 runs wait; started in all: 9, reported: 8."
    )
    holders = tuple(f"pid=1 passes=1 since=1 label={label}" for label in ("fix 20260301", "`@x`", *"abcd"))
    full = HostView(slots=2, held=2, peak=2, pending=1, dispatched=2, reports=0)
    room.fullness = replace(full, paused_by="olga", passes=Passes(8, holders))
    room.says("will", "/run fix")
    room.says("will", "/run test")
    room.ends(room.rows[1].run_id)
    assert room.says("rea", "/status") == (
        f"- `20260301-120000-a00001`: `fix` at `{HEAD}`, asked for by `will`, waits at place 1: no slot is free\n\n"
        f"Ended lately:\n\n- `20260301-120000-a00002`: `test` at `{HEAD}`, asked for by `will`, has ended\n\n"
        "On this host 2 of 2 slots are held (2 at most so far), 1 run waits; started in all: 2, reported: 0. "
        "6 of 8 CPU passes are held by "
        "`fix 20260301`, `` `@x` ``, `a`, `b`, `c`, and 1 more. New runs are paused by `olga`."
    )
    assert "No run was asked for" in room.says("rea", "/status", on=ISSUE)


@pytest.mark.parametrize(("command", "look"), [("/logs", "leadsman logs"), ("/verify", "leadsman show")])
def test_of_a_run_on_another_host_it_is_said_where_its_files_are(room: Room, command: str, look: str) -> None:
    room.says("will", "/run fix")
    room.rows = [replace(room.rows[0], host="build-7", is_open=False)]
    run_id = room.rows[0].run_id
    assert room.says("rea", command) == (
        f"Run `{run_id}` of `fix` is on the host `build-7`, and so are its files. "
        f"Whoever operates it can look there: `{look} {run_id}`"
    )


def test_logs_show_the_end_and_stay_in_their_block(room: Room) -> None:
    assert room.says("rea", "/logs") == "There is no run to show a log of here. `/status` lists what there is."
    room.says("will", "/run fix")
    run_id = room.rows[0].run_id
    assert room.says("rea", "/logs") == f"Run `{run_id}` of `fix` has written no log yet."
    room.logs[run_id] = ["one", "```", "\x1b[31m@ann\x1b[0m"]
    assert room.says("rea", f"/logs {run_id[:20]} lines=2") == (
        f"The end of the log of run `{run_id}` (`fix`):\n\n````\n```\n@ann\n````"
    )
    assert room.says("rea", "/logs lines=0") == (
        "`lines` can't be `0`: it takes a number from 1 to 1000. Usage: `/logs [RUN] [lines=N]`"
    )
    for wrong in ("lines=-1", "lines=1.5", "lines=\u0663", "lines=99999", "lines=x"):
        assert "it takes a number from 1 to 1000" in room.says("rea", f"/logs {wrong}")


def test_an_ended_runs_report_is_checked_again(room: Room) -> None:
    room.says("will", "/run fix")
    run_id = room.rows[0].run_id
    assert "has not ended" in room.says("rea", f"/verify {run_id}")
    room.ends(run_id)
    assert room.says("rea", "/verify") == (f"Run `{run_id}` has no report on this host, so there is nothing to check.")
    room.findings[run_id] = (
        Finding("signature", "holds", "by the key abc"),
        Finding("log a|b", "differs", "@ann <b>"),
    )
    assert room.says("rea", "/verify") == (
        f"The report of run `{run_id}` of `fix`, checked again: 1 of 2 claims hold.\n\n"
        "| claim | verdict | seen |\n|---|---|---|\n"
        "| signature | holds | by the key abc |\n"
        "| log a\\|b | differs | @\u200bann &lt;b&gt; |\n\n"
        "Anybody can do the same, with the checks run again: `leadsman verify` in a clone."
    )


def test_a_huge_log_fits_into_the_answer(room: Room) -> None:
    room.says("will", "/run fix")
    room.logs[room.rows[0].run_id] = ["\u65e5" * 50_000, "the end"]
    said = room.says("rea", "/logs")
    assert 20_000 < len(said.encode()) < 21_000
    assert said.endswith("the end\n```")


def test_a_run_is_named_by_any_start_of_its_id_that_is_its_own(room: Room) -> None:
    room.says("will", "/run fix\n/run test")
    one, two = (row.run_id for row in room.rows)
    both = f"More than one run is meant. Post one of these:\n\n```\n/cancel {one}\n/cancel {two}\n```"
    assert both == room.says("will", "/cancel")
    assert {one, two} == set(room.says("will", "/cancel 2026").replace("\n", " ").split()) & {one, two}
    for wrong in ("2027", "%", "_", "../x", "x" * 99):
        assert room.says("will", f"/cancel {wrong}") == (
            f"There is no run `{wrong}` here. `/status` lists what there is."
        )
    assert f"Run `{two}` of `test` is being cancelled." in room.says("will", f"/cancel {two}")


def test_a_run_elsewhere_is_not_reached_from_here(room: Room) -> None:
    room.says("will", "/run fix", on=ISSUE)
    run_id = room.rows[0].run_id
    for command in ("cancel", "logs", "retry"):
        assert room.says("will", f"/{command} {run_id}") == (
            f"There is no run `{run_id}` here. `/status` lists what there is."
        )


def test_only_what_is_open_is_cancelled_and_only_what_ended_is_retried(room: Room) -> None:
    room.says("will", "/run fix a -- -b")
    run_id = room.rows[0].run_id
    assert room.says("will", f"/retry {run_id}") == (
        f"Run `{run_id}` of `fix` has not ended. Wait for it, or stop it:\n\n```\n/cancel {run_id}\n```"
    )
    assert room.says("will", "/retry") == room.says("will", f"/retry {run_id}")
    room.ends(run_id)
    assert room.says("will", f"/cancel {run_id}") == (
        f"Run `{run_id}` of `fix` has already ended. `/retry` starts it anew."
    )
    assert room.says("will", "/cancel") == "There is no run to cancel here. `/status` lists what there is."
    room.pushes(NEWER)
    room.says("ann", "/retry")
    intent = started(room).intent
    assert (NEWER, ("a", "-b"), "ann") == (intent.head, intent.args, intent.event.actor.login)


def test_a_task_that_was_taken_away_is_not_retried(room: Room) -> None:
    room.says("will", "/run fix")
    room.ends(room.rows[0].run_id)
    del room.tasks_["fix"]
    assert room.says("will", "/retry") == "There is no task `fix` here. There are `test`."


def test_a_retry_of_a_forks_new_commit_needs_its_own_approval(room: Room) -> None:
    room.forks()
    room.says("will", f"/ok-to-test {HEAD}\n/run fix")
    room.ends(room.rows[0].run_id)
    room.pushes(NEWER)
    assert room.says("will", "/retry").startswith("Pull request 7 comes from a fork")


def test_a_run_can_be_cancelled_in_the_comment_that_asks_for_it(room: Room) -> None:
    room.says("will", "/run fix\n/cancel")
    start, stop = room.results[:2]
    assert isinstance(start, Start)
    assert Stop(start.intent.run_id, actor("will"), "/cancel in a comment") == stop


@pytest.mark.parametrize("text", ["/run fix\n/cancel", "/run fix\n/run fix\n/cancel"])
def test_a_run_that_is_not_started_since_its_task_goes_on_is_never_the_one_that_is_meant(room: Room, text: str) -> None:
    room.says("will", "/run fix")
    going_on = room.rows[0].run_id
    room.says("will", text)
    assert Stop(going_on, actor("will"), "/cancel in a comment") in room.results


def test_status_lists_no_run_that_is_not_started_since_its_task_goes_on(room: Room) -> None:
    room.says("will", "/run fix")
    assert room.says("will", "/run fix\n/status").count("`fix` at") == 1


def test_of_two_that_a_comment_starts_of_one_task_the_first_is_the_one_that_is_meant(room: Room) -> None:
    room.says("will", "/run fix\n/run fix\n/cancel")
    start = room.results[0]
    assert isinstance(start, Start)
    assert Stop(start.intent.run_id, actor("will"), "/cancel in a comment") in room.results


# Holding


def test_a_hold_keeps_new_runs_away_until_it_ends(room: Room) -> None:
    assert room.says("will", "/hold wait for @ann's `review`") == (
        "No new runs start here from now on (wait for @\u200bann's \\`review\\`). "
        "What runs goes on, what waits waits on; `/unhold` ends the hold."
    )
    assert Hold(PULL, actor("will"), "wait for @ann's `review`") in room.results
    assert room.says("ann", "/run fix") == (
        "No new runs start here: `will` put it on hold (wait for @\u200bann's \\`review\\`). `/unhold` ends that."
    )
    room.says("ann", "/run fix", on=ISSUE)
    assert MAIN == started(room).intent.head
    assert room.says("ann", "/unhold") == "Runs may start here again. The hold was set by `will`."
    assert Unhold(PULL, actor("ann")) in room.results
    assert room.says("ann", "/unhold") == "Nothing is on hold here."


def test_a_hold_counts_for_the_command_below_it(room: Room) -> None:
    assert "put it on hold" in room.says("will", "/hold\n/run fix")
    room.says("will", "/unhold\n/run fix")
    assert HEAD == started(room).intent.head


def test_a_retry_is_held_too(room: Room) -> None:
    room.says("will", "/run fix")
    room.ends(room.rows[0].run_id)
    room.holds[PULL] = HoldView("ann", "")
    assert room.says("will", "/retry") == "No new runs start here: `ann` put it on hold. `/unhold` ends that."


# Help and tasks


def test_help_lists_what_this_person_may_do_in_a_code_block(room: Room) -> None:
    said = room.says("rea", "/help")
    intro, fence, *lines, end = said.split("\n")[0:1] + said.split("\n")[2:]
    assert "What `rea` may do here, with **read** permission:" == intro
    assert ("```", "```") == (fence, end)
    usages = [line.split()[0] for line in lines if line.startswith("/")]
    assert ["/help", "/tasks", "/status", "/logs", "/cancel", "/resume", "/retry", "/verify"] == usages
    assert "    ends a run, waiting or under way (only runs that you asked for)" in lines


@pytest.mark.parametrize("name", COMMANDS)
def test_help_about_a_command_is_its_record(room: Room, name: str) -> None:
    said = room.says("rea", f"/help {name}")
    command = COMMANDS[name]
    assert said.startswith(f"```\n{command.usage}\n    {command.help}\n```\n")
    assert ("Anyone may use it." if not command.needs else f"needs {command.needs.name.lower()}") in said
    assert (isinstance(command, RunRecord) and command.or_asker) == ("to have asked for the run" in said)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_usage_names_all_that_it_takes(name: str) -> None:
    command = COMMANDS[name]
    assert name == command.name
    assert command.usage.startswith(f"/{name}")
    for word in (*command.takes.needed, *command.takes.optional, *(f"{key}=" for key in command.takes.keys)):
        assert word in command.usage
    assert "\n" not in command.help


def test_help_about_nothing_known_suggests(room: Room) -> None:
    assert room.says("rea", "/help rn") == (
        "There is no command `rn`. Did you mean `run`? `/help` lists what there is."
    )
    assert "starts a task" in room.says("rea", "/help /RUN")


def test_tasks_lists_them_with_their_origin_and_warnings(room: Room) -> None:
    origin = f".leadsman.toml at {MAIN} of main"
    room.tasks_["doc`s"] = KnownTask(Task(name="docs", run=("x",), help="<b>@ann</b>", difficulty="easy"), origin)
    room.warnings = ("unknown key *spede*",)
    assert room.says("rea", "/tasks") == (
        "Start one with `/run` and its name:\n\n"
        "- `fix`: mends \\*things\\* (medium, from `leadsman.toml`)\n"
        "- `test` (medium, from `leadsman.toml`)\n"
        f"- ``doc`s``: &lt;b&gt;@\u200bann&lt;/b&gt; (easy, from `{origin}`)\n\n"
        "The configuration has warnings:\n\n- unknown key \\*spede\\*"
    )
    room.tasks_, room.warnings = {}, ()
    assert room.says("rea", "/tasks") == (
        "No task is configured for this repository yet. Write a `[[task]]` into its `.leadsman.toml`."
    )


# Whose comment counts, and what of it


def test_several_commands_get_one_answer_in_their_order(room: Room) -> None:
    said = room.says("will", "/tasks\nand\n/rn x\n/run fix\n\n/leadsman nope\n/run test\n")
    starts = ["Start one", "Run `20260", "There is no command `nope`", "Run `20260"]
    for start, part in zip(starts, said.split("\n\n---\n\n"), strict=True):
        assert part.startswith(start)
    ordinals = [result.intent.ordinal for result in room.results if isinstance(result, Start)]
    assert [1, 3] == ordinals
    assert isinstance(room.decided, Decision)
    assert room.decided.answer is not None
    assert (PULL, "1") == (room.decided.answer.on, room.decided.answer.comment_id)
    assert {room.decided.answer.key} == {row.intent.answer for row in room.rows}


def test_more_than_ten_commands_are_cut_off_and_that_is_said(room: Room) -> None:
    said = room.says("will", "/status\n" * 12)
    assert said.endswith("One comment may hold 10 commands; the last 2 were left out. Post them in another comment.")
    assert isinstance(room.decided, Decision)
    assert 10 == len(room.decided.obeyed)


@pytest.mark.parametrize("text", ["Looks good.", "/lgtm", "> /run fix", "`/run fix`", ""])
def test_a_comment_without_a_command_is_left_alone(room: Room, text: str) -> None:
    assert "(nothing: The comment holds no new command.)" == room.says("will", text)


def test_the_bots_own_words_never_count(room: Room) -> None:
    room.allowed, room.people["leadsman[bot]"] = ("leadsman[bot]",), Permission.ADMIN
    assert "(nothing: The comment is the bot's own.)" == room.says("leadsman[bot]", "/run fix")


def test_another_bot_counts_only_where_it_is_listed(room: Room) -> None:
    room.people["deps[bot]"] = Permission.WRITE
    assert "(nothing: deps[bot] is a bot that is not listed in allowed_bots.)" == room.says("deps[bot]", "/run fix")
    room.allowed = ("Deps[bot]",)
    room.says("deps[bot]", "/run fix")
    assert HEAD == started(room).intent.head


def test_who_wrote_it_is_asked_of_the_forge(room: Room) -> None:
    room.says("rea", "hello")
    room.said["1"] = replace(room.said["1"], body="/run fix")
    assert "`rea` has **read**" in room.happens(Commented("1", actor("will"), "/run fix", None), PULL, who="will")


def test_a_repository_that_is_not_configured_gets_no_answer(room: Room) -> None:
    elsewhere = IssueRef(Repo("github", "acme/other"), 1)
    assert "(nothing: github:acme/other is in no [[project]] of the configuration.)" == room.says(
        "will", "/run fix", on=elsewhere
    )


def test_an_edit_runs_only_what_is_new_and_only_for_the_author(room: Room) -> None:
    room.says("will", "/run fix")
    assert "(nothing: The comment holds no new command.)" == room.edits("will", "Hello.\n\n/run fix")
    room.edits("will", "/run test\n/run fix")
    assert ["fix", "test"] == [row.task for row in room.rows]
    assert "(nothing: The comment was edited by somebody else than its author.)" == room.edits("ann", "/run test x")
    room.edits("will", "/run test x\n/run test x")
    assert ["fix", "test", "test"] == [row.task for row in room.rows]


def test_a_second_delivery_of_a_comment_repeats_nothing(room: Room) -> None:
    room.says("will", "/run fix\n/run fix")
    event = Commented("1", actor("will"), "/run fix\n/run fix", None)
    assert "(nothing: Each command of the comment was obeyed before, or is no longer in it.)" == room.happens(
        event, PULL
    )
    assert 2 == len(room.rows)


def test_a_trackers_note_of_the_same_number_is_another_comment(room: Room) -> None:
    room.says("will", "/run fix")
    note = Commented("1", actor("will"), "/run fix", None)
    room.happens(note, TicketRef(REPO, "work", 7), who="will")
    assert 2 == len(room.rows)
    room.happens(note, TicketRef(REPO, "work", 7), who="will")
    assert 2 == len(room.rows)


def test_the_same_comment_decided_again_has_the_same_answer(room: Room) -> None:
    room.says("will", "/run fix")
    first = room.decided
    room.obeyed.clear()
    room.happens(Commented("1", actor("will"), "/run fix", None), PULL)
    assert isinstance(first, Decision)
    assert isinstance(room.decided, Decision)
    assert first.answer == room.decided.answer
    room.says("will", "/run fix")
    assert first.answer != room.decided.answer


def test_what_was_taken_out_of_the_comment_since_is_not_run(room: Room) -> None:
    room.says("will", "hello")
    room.said["1"] = replace(room.said["1"], body="/run test")
    room.happens(Commented("1", actor("will"), "/run fix\n/run test", None), PULL)
    assert ["test"] == [row.task for row in room.rows]


def test_a_deleted_comment_asks_for_nothing(room: Room) -> None:
    event = Commented("404", actor("will"), "/run fix", None)
    assert "(nothing: The comment is gone.)" == room.happens(event, PULL, at=NOW - timedelta(minutes=2))


@pytest.mark.parametrize("missing", ["comment", "pull"])
def test_what_is_not_there_right_after_an_event_is_looked_for_again(room: Room, missing: str) -> None:
    room.failing[missing] = Gone(f"{missing} 7 is not there")
    with pytest.raises(Unavailable) as problem:
        room.says("will", "/run fix")
    assert problem.value.retry_at is not None
    assert problem.value.retry_at > NOW
    assert not room.obeyed
    room.failing.clear()
    room.happens(Commented("1", actor("will"), "/run fix", None), PULL)
    assert HEAD == started(room).intent.head


def test_what_stays_away_is_said(room: Room) -> None:
    room.says("will", "hello")
    room.said["1"] = replace(room.said["1"], body="/run fix")
    room.failing["pull"] = Gone("pull 7 is not there")
    said = room.happens(Commented("1", actor("will"), "/run fix", None), PULL, at=NOW - timedelta(minutes=2))
    assert said == (
        "The forge has no such thing (any more): pull 7 is not there. Check it, then post the command again."
    )


@pytest.mark.parametrize("call", ["permission", "pull", "comment"])
def test_a_forge_that_does_not_answer_is_asked_again_later(room: Room, call: str) -> None:
    room.failing[call] = Unavailable("502")
    with pytest.raises(Unavailable):
        room.says("will", "/run fix")


@pytest.mark.parametrize("call", ["permission", "pull"])
def test_a_right_that_the_bot_lacks_is_named(room: Room, call: str) -> None:
    room.failing[call] = Forbidden("reading pull requests needs pull_requests:read")
    assert room.says("will", "/run fix") == (
        "The forge refused the bot what it needs here: reading pull requests needs pull\\_requests:read. "
        "Whoever runs the bot can give its token the right; then post the command again."
    )


def test_resume_is_for_a_run_that_is_stopped_and_asks_for_its_next_start(room: Room) -> None:
    assert "There is no run to resume here." in room.says("will", "/resume")
    room.says("will", "/run fix")
    assert "has not begun yet" in room.says("will", "/resume")
    (run,) = room.rows
    room.rows = [replace(run, phase="start", position=0, pid=4711)]
    said = room.says("will", "/resume")
    assert "has not ended (pid 4711)" in said
    assert f"/cancel {run.run_id}" in said
    room.rows = [replace(run, phase="blocked", reason="which key?", position=0, starts=2)]
    assert "is blocked: which key?" in room.says("rea", "/status")
    assert "needs **write**" in room.says("tria", "/resume")
    assert "is started again where it was" in room.says("will", "/resume")
    assert Resume(run.run_id, actor("will"), 3) in room.results
    room.ends(run.run_id)
    assert "has already ended" in room.says("will", f"/resume {run.run_id}")


def test_without_a_word_resume_means_the_one_run_that_is_stopped(room: Room) -> None:
    room.says("will", "/run fix")
    room.says("will", "/run test")
    fix, test = room.rows
    room.rows = [replace(fix, phase="start", pid=1), replace(test, phase="interrupted")]
    room.says("will", "/resume")
    assert [test.run_id] == [result.run_id for result in room.results if isinstance(result, Resume)]


def test_one_command_that_fails_leaves_the_others_alone(room: Room) -> None:
    room.failing["pull"] = Forbidden("no")
    said = room.says("will", "/run fix\n/status")
    assert said.startswith("The forge refused")
    assert "No run was asked for here yet." in said


def test_what_goes_into_the_books_suits_any_database(room: Room) -> None:
    room.says("will", "/run fix \x00\ud800" + "x" * 5000)
    ((_, _, line, _),) = room.obeyed
    assert line.startswith("/run fix \\u0000\\ud800xxx")
    assert line.isprintable()
    assert len(line) < 300
    room.says("will", "/run fix \x00\ud800" + "x" * 5001)
    assert 2 == len({line for _, _, line, _ in room.obeyed})


def test_no_answer_holds_a_command(room: Room) -> None:
    """Should the bot ever take its own answer for somebody else's comment, it finds nothing in it."""
    lines = [f"/{name}" for name in COMMANDS] + [f"/help {name}" for name in COMMANDS]
    lines += [
        "/run fix",
        "/run fix sha=aaaa",
        f"/run fix sha={NEWER}",
        "/run /run",
        "/help /x",
        "/hold /run fix",
        "/run",
    ]
    lines += [
        "/leadsman /run",
        "/run fix x=1",
        "/cancel 2",
        "/run '",
        "/retry",
        "/run fix\u200b",
        "/run test",
        "/cancel",
    ]
    room.logs[RunId("20260301-120000-a00001")] = ["/run fix", "~~~", "````", "/run fix"]
    words = Words(frozenset(COMMANDS), room.bot_names(REPO))
    for forked in (False, True):
        if forked:
            room.forks()
        for line in [*lines, "/logs", "/status"]:
            said = room.says("will", line)
            assert not isinstance(room.decided, Ignored), line
            assert () == commands_in(said, words), said


def test_a_ticket_that_the_line_above_gives_to_a_run_is_nobody_elses(room: Room) -> None:
    said = room.says("will", "/run fix\n/claim\n/release", on=ISSUE)
    run_id = started(room).intent.run_id
    assert f"Run `{run_id}` of `fix` has this ticket." in said
    assert f"asked for it at {NOW:%Y-%m-%dT%H:%M:%SZ}." in said
    assert f"The ticket is given back as soon as run `{run_id}` has come to the end of its turn" in said
    assert TakenBack(run_id, "will, who gave the ticket back") in room.results
