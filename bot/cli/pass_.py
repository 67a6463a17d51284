"""`leadsman pass`: runs a command while holding CPU passes; shows the host's pool.

Also a program of its own (`python -I -S bot/cli/pass_.py run ...`): the bot starts it so, at the lowest cost.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Behind the standard library: nothing of ours can take its place. -I and -S keep everything else out.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from bot import passes, pool
from bot.cpus import host_size

USAGE = """\
leadsman pass run [--passes K] [--label TEXT] [--log-fd N] [--jobserver] -- CMD ARGS...
    holds K passes (default 1) of this host's pool while CMD runs; waits in line for them
        leadsman pass run --passes 2 -- pytest -n 2
        leadsman pass run --passes 4 --jobserver -- make test
    --label TEXT   what others read about it while they wait (default: CMD's name)
    --log-fd N     where notices go (default 2)
    --jobserver    hands the passes on to make, ninja and cargo inside CMD
    ends with CMD's exit code, or 128+n (signal), 125 (usage), 126 (not executable), 127 (not found)
leadsman pass status [--json]
    who holds which pass
leadsman pass size
    how many there are: one for each CPU that may be used
"""


def main(argv: list[str]) -> int:
    """Answers the exit code."""
    as_json = "--json" in argv[:1]
    verb, *words = argv[as_json:] or [""]
    if verb == "run" and words[:1] not in (["-h"], ["--help"]):
        return passes.run(words, os.environ)
    if verb == "status" and words in ([], ["--json"]):
        return _status(as_json=as_json or bool(words))
    if verb == "size" and not words:
        return _size()
    helped = verb in ("-h", "--help") or words[:1] in (["-h"], ["--help"])
    (sys.stdout if helped else sys.stderr).write(USAGE)
    return 0 if helped else 2


def _status(*, as_json: bool) -> int:
    try:
        shown = pool.open_pool(os.environ, host_size())
        size = shown.recorded_size() or shown.size
        holders = shown.holders()
    except pool.PoolUnusable as problem:
        if as_json:
            _print_json({"available": False, "reason": str(problem)})
        else:
            print(f"unavailable: {pool.printable(str(problem))}")
        return 0
    held, free = len(holders), size - len(holders)
    if as_json:
        slots = [{"slot": slot, "holder": line} for slot, line in holders]
        _print_json({"available": True, "dir": shown.path, "size": size, "held": held, "free": free, "holders": slots})
        return 0
    print(f"pool={size} held={held} free={free} dir={pool.printable(shown.path)}")
    for slot, line in holders:
        print(f"slot={slot} {line}")
    return 0


def _print_json(value: dict[str, object]) -> None:
    import json

    print(json.dumps(value))


def _size() -> int:
    try:
        size = host_size()
        pool.open_pool(os.environ, size).compare_size()
    except pool.SizesDiffer as problem:
        sys.stderr.write(f"leadsman pass: {pool.printable(str(problem))}\n")
        return passes.USAGE
    except pool.PoolUnusable:
        pass  # it would still have this size
    print(size)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
