"""The tables. Times are seconds since 1970 (UTC) as floats; JSON is text, read by `bot.codec`.

A run's truth is its directory: `runs` and `leases` can be rebuilt from there. `deliveries`, `commands` and `answers`
are the truth of what came in and what is to be said.
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 7
"""What `bot.store.engine` migrates to; each step up has a function in `bot.store.migrations`."""

metadata = sa.MetaData()

schema_version = sa.Table("schema_version", metadata, sa.Column("version", sa.Integer, nullable=False))

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),  # name of the forge's table
    sa.Column("delivery", sa.Text, nullable=False),  # the forge's id of it
    sa.Column("event", sa.Text, nullable=False),  # as the header names it
    sa.Column("headers", sa.Text, nullable=False),  # JSON, without the signature
    sa.Column("body", sa.LargeBinary, nullable=False),  # verbatim
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of the body
    sa.Column("lane", sa.Text, nullable=False),  # repository it is about: one lane is worked in order
    sa.Column("received_at", sa.Float, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # queued | done | ignored | failed
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("due_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("note", sa.Text, nullable=False, server_default=""),  # why ignored or failed
    sa.UniqueConstraint("source", "delivery"),
    sa.Index("deliveries_lane", "state", "lane", "id"),
)

commands = sa.Table(  # what was already obeyed: a second delivery of the same comment, or an edit, repeats nothing
    "commands",
    metadata,
    sa.Column("repo", sa.Text, nullable=False),  # str(Repo)
    sa.Column("comment_id", sa.Text, nullable=False),
    sa.Column("line", sa.Text, nullable=False),  # the command's text
    sa.Column("occurrence", sa.Integer, nullable=False),  # 0 for the first line of this text
    sa.Column("at", sa.Float, nullable=False),
    sa.PrimaryKeyConstraint("repo", "comment_id", "line", "occurrence"),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("repo", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),  # str(Subject)
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("asked_by", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("intent", sa.Text, nullable=False),  # JSON of bot.model.Intent
    sa.Column("phase", sa.Text, nullable=False),  # bot.road.Phase
    sa.Column("reason", sa.Text, nullable=False, server_default=""),  # why it waits, or how it ended
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("due_at", sa.Float, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("cancel", sa.Text),  # who asked for its end, and why
    sa.Column("stop_by", sa.Text),  # who asked it to stop after its turn, and why
    sa.Column("stop_at", sa.Float),  # and when
    sa.Column("outdated", sa.Text),  # the head that replaced its own
    sa.Column("resume", sa.Integer),  # which start of its command was asked for: 2 = the first resume
    sa.Column("closed_at", sa.Float),
    sa.Column("part", sa.Text),  # JSON of bot.answers.Part: what a comment says of it that other hosts write, too
    sa.Column("host", sa.Text, nullable=False, server_default=""),  # whose it is; empty until it is given a slot
    sa.Index("runs_open", "closed_at", "due_at"),
    sa.Index("runs_subject", "subject"),
)

hosts = sa.Table(  # the hosts that serve this store, as each says of itself
    "hosts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("home", sa.Text, nullable=False, server_default=""),  # a random id of the home that has this name
    sa.Column("slots", sa.Integer, nullable=False),
    sa.Column("load", sa.Float),  # its load as admission sees it; null = not known yet
    sa.Column("most_load", sa.Float, nullable=False),  # above that it starts nothing
    sa.Column("seen_at", sa.Float, nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("slot", sa.Text, nullable=False),  # `wt-1`: of that host
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False, unique=True),
    sa.Column("repo", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.PrimaryKeyConstraint("host", "slot"),
)

answers = sa.Table(  # one comment of ours each
    "answers",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, nullable=False),  # JSON of bot.model.Subject
    sa.Column("comment_id", sa.Text),  # the comment that is answered, for reactions; null for a rule's run
    sa.Column("sections", sa.Text, nullable=False),  # JSON of bot.answers.Section, in order
    sa.Column("posted_id", sa.Text),  # our comment's id at the forge
    sa.Column("posted_digest", sa.Text, nullable=False, server_default=""),
    sa.Column("reaction", sa.Text, nullable=False, server_default=""),
    sa.Column("due_at", sa.Float),  # null = nothing to say
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Index("answers_due", "due_at"),
)

claim_events = sa.Table(  # who took, lost, gave back and conceded what: also in events.jsonl
    "claim_events",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("event", sa.Text, nullable=False),  # claim | claim_lost | release | concede | sweep
    sa.Column("key", sa.Text, nullable=False),  # what is claimed, as in bot.model.Claim
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),  # JSON of the rest
    sa.Index("claim_events_key", "key", "id"),
)

holds = sa.Table(  # no new runs here
    "holds",
    metadata,
    sa.Column("subject", sa.Text, primary_key=True),  # str(Subject)
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

approvals = sa.Table(  # /ok-to-test: runs may start on exactly this commit
    "approvals",
    metadata,
    sa.Column("repo", sa.Text, nullable=False),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.PrimaryKeyConstraint("repo", "sha"),
)

heads = sa.Table(  # which head of a pull request was known since when, from the deliveries
    "heads",
    metadata,
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),  # by the forge's clock, whole seconds on most
    sa.Column("seen_at", sa.Float, nullable=False),  # by ours
    sa.PrimaryKeyConstraint("subject", "seen_at"),
)

settings = sa.Table(  # small durable facts: pause, high-water marks, which ref namespace a forge takes
    "settings",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

local_threads = sa.Table(  # the local forge's pull requests and issues
    "local_threads",
    metadata,
    sa.Column("forge", sa.Text, nullable=False),
    sa.Column("repo", sa.Text, nullable=False),  # owner/name
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # pull | issue
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False, server_default=""),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # open | closed | merged
    sa.Column("head_ref", sa.Text),
    sa.Column("base_ref", sa.Text),
    sa.Column("labels", sa.Text, nullable=False, server_default="[]"),
    sa.Column("assignees", sa.Text, nullable=False, server_default="[]"),
    sa.Column("at", sa.Float, nullable=False),
    sa.PrimaryKeyConstraint("forge", "repo", "number"),
)

local_comments = sa.Table(  # and what happened between them, so that there is one order of both
    "local_comments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("forge", sa.Text, nullable=False),
    sa.Column("repo", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False, server_default=""),  # labeled | unlabeled | assigned | unassigned
    sa.Column("body", sa.Text, nullable=False),  # of an event the label, or who was assigned
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("reactions", sa.Text, nullable=False, server_default="[]"),
    sa.Index("local_comments_thread", "forge", "repo", "number"),
)
