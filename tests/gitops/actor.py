"""One of many bots: a process that does one thing to a mirror, says what came of it, and can be killed meanwhile."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gitops import evidence, notes, publish, refs, worktree
from gitops.credentials import Remote
from gitops.git import Identity
from gitops.mirror import Mirror

BOT = Identity("Leadsman", "leadsman@bot.example")


def add(mirror: Mirror, spec: dict[str, Any]) -> object:
    spare = Path(spec["spare"]) if "spare" in spec else None
    tree = worktree.add(mirror, Path(spec["path"]), branch=spec["branch"], sha=spec["sha"], spare=spare)
    return tree.head


def refresh(mirror: Mirror, spec: dict[str, Any]) -> object:
    mirror.refresh()
    return mirror.git.run("rev-parse", "refs/remotes/origin/main").text


def come_and_go(mirror: Mirror, spec: dict[str, Any]) -> object:
    worktree.add(mirror, Path(spec["path"]), branch=spec["branch"], sha=spec["sha"])
    mirror.refresh()
    worktree.drop(mirror, Path(spec["path"]), recover=spec["recover"])
    return Path(spec["path"]).exists()


def drop(mirror: Mirror, spec: dict[str, Any]) -> object:
    worktree.drop(mirror, Path(spec["path"]), recover=spec["recover"])
    return None


def seal(mirror: Mirror, spec: dict[str, Any]) -> object:
    sealed = evidence.seal(mirror, Path(spec["path"]), base=spec["base"], identity=BOT, message=spec["message"])
    return sealed.tip


def claim(mirror: Mirror, spec: dict[str, Any]) -> object:
    return type(refs.create(mirror, spec["ref"], spec["message"], BOT)).__name__


def land(mirror: Mirror, spec: dict[str, Any]) -> object:
    """Bring a commit to a branch that others publish to as well; how often it had to be tried."""
    tip, ref = spec["sha"], spec["ref"]
    for attempt in range(1, 50):
        seen = mirror.remote_ref(ref)
        if seen is not None:
            mirror.refresh()
            merged = publish.incorporate(mirror, tip, seen, BOT, "Merge")
            assert isinstance(merged, str)
            tip = merged
        if isinstance(publish.push_exact(mirror, tip, ref, expect=seen), publish.Pushed):
            return attempt
    return None


def publish_many(mirror: Mirror, spec: dict[str, Any]) -> object:
    """Commit `count` times to a branch that others publish to as well, each time as if there were nobody else; the
    commits that landed, and how many pushes that took."""
    landed, pushes = [], 0
    for number in range(spec["count"]):
        base = spec["base"]
        tip = publish.commit_files(mirror, base, {f"{spec['name']}-{number}": b"1\n"}, BOT, f"{spec['name']} {number}")
        for lost in range(100):
            time.sleep(random.uniform(0, 0.3 * lost))
            seen = mirror.remote_ref(spec["ref"])
            if seen is not None and not mirror.is_ancestor(seen, tip):
                assert mirror.fetch_commit(seen, ref=spec["ref"])
                tip, base = str(publish.rebase(mirror, tip, base, seen, BOT)), seen
            pushes += 1
            if isinstance(publish.push_exact(mirror, tip, spec["ref"], expect=seen), publish.Pushed):
                landed.append(tip)
                break
    return [landed, pushes]


def note(mirror: Mirror, spec: dict[str, Any]) -> object:
    return type(notes.write(mirror, spec["sha"], spec["content"].encode(), BOT)).__name__


def hold(mirror: Mirror, spec: dict[str, Any]) -> object:
    with mirror.locked():
        print(json.dumps("locked"), flush=True)
        sys.stdin.readline()
    return "free"


ACTIONS: dict[str, Callable[[Mirror, dict[str, Any]], object]] = {
    "add": add,
    "claim": claim,
    "come_and_go": come_and_go,
    "drop": drop,
    "hold": hold,
    "land": land,
    "note": note,
    "publish_many": publish_many,
    "refresh": refresh,
    "seal": seal,
}


if __name__ == "__main__":
    action, mirror_path, url, spec = sys.argv[1:]
    it = Mirror(Path(mirror_path), Remote(url))
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()  # all start at once
    print(json.dumps(ACTIONS[action](it, json.loads(spec))), flush=True)
