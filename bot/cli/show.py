"""`leadsman show`: what a run did: its state, its report, what it changed."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

from bot.cli.options import read, say
from bot.cli.status import in_full
from bot.liveness import reading
from bot.rundir import RunDir, find, read_json
from bot.statefiles import open_plain

USAGE = """Usage: leadsman show ID [--store DIR] [--json] [--no-diff]

Prints the run's state, its report, the files it changed and the changes.

  --no-diff   the files alone
  --json      all of it as one object

  leadsman show 20260105-0900 --no-diff
"""


def main(argv: list[str]) -> int:
    options = read(argv, USAGE, flags=("--json", "--no-diff"), words=(1, 1))
    if options is None:
        return 0
    run = find(options.store, options.words[0])
    patch = _text(run.changes_patch)
    shown = None if "--no-diff" in options.flags else patch
    if "--json" in options.flags:
        facts = {
            "status": reading(run.path),
            "report": said_in(read_json(run.report_json)),
            "report_md": report_of(run),
            "files": changed_files(patch or ""),
            "changes": shown,
        }
        print(json.dumps(facts))
        return 0
    files = changed_files(patch or "")
    parts = [
        in_full(reading(run.path), {"directory": str(run.path), "log": str(run.worker_log)}),
        report_of(run) or "It wrote no report.",
        "\n".join(["Changed files:", *(f"  {name}" for name in files)]) if files else "",
        shown or "",
    ]
    say("\n\n".join(part.rstrip() for part in parts if part))
    return 0


def report_of(run: RunDir) -> str | None:
    """The report, else what the run itself wrote as one."""
    report = _text(run.report_md)
    return report if report is not None else _text(run.worker_report)


def said_in(envelope: dict[str, Any] | None) -> Any:
    """What a signed report says; anything else as it stands. Whether the signature is good, `verify` tells."""
    try:
        return json.loads(base64.b64decode((envelope or {})["payload"]))["predicate"]
    except (KeyError, TypeError, ValueError):
        return envelope


def changed_files(patch: str) -> list[str]:
    """The files of a `git diff`, by their names after it (before it, for a removed one)."""
    found: dict[str, None] = {}
    for block in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE):
        if match := re.match(r'diff --git "?a/.+?"? ("?)b/(.+?)"?$', block, re.MULTILINE):
            found[_unquoted(match[2]) if match[1] else match[2]] = None
    return list(found)


def _unquoted(name: str) -> str:
    """A name that git has put in quotes: its bytes are written as C would have them."""
    return name.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")


def _text(path: Path) -> str | None:
    """What a plain file holds; None for anything else that the run may have put there."""
    descriptor = open_plain(path)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read()
