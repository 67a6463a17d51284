"""`leadsman lock status`: does a server hold the home, and which."""

from __future__ import annotations

import json
import os
import sys

from bot import home
from bot.errors import UsageError

USAGE = """Usage: leadsman lock status [--json]

Says whether a server holds the home: free, held by ..., or stale (...), where one was killed and its note is
left. The exit code is 0 in each case.

  leadsman lock status
  leadsman --home /srv/leadsman lock status --json
"""


def main(argv: list[str]) -> int:
    if any(word in ("-h", "--help") for word in argv):
        sys.stdout.write(USAGE)
        return 0
    words = [word for word in argv if word != "--json"]
    if words != ["status"]:
        raise UsageError(f"`leadsman lock` knows `status`, not `{' '.join(words)}`. Try `leadsman lock status`.")
    state = home.lock_state(home.resolve(None, os.environ))
    if "--json" in argv:
        holder = state.holder._asdict() if state.holder else None
        print(json.dumps({"state": state.word, "holder": holder}))
    else:
        print(state)
    return 0
