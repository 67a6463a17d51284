"""Takes and gives back passes of a pool whose size the test says: `passes_worker.py POOL SIZE COUNT HOLD ROUNDS LABEL`.

Prints for each turn `got|gave <monotonic seconds> <slots>`; ROUNDS 0 = until stdin ends. Standard library only.
"""

import select
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from bot.pool import Pool


def main() -> None:
    path, size, count, hold, rounds, label = sys.argv[1:]
    pool = Pool(path, int(size))
    turn = 0
    while turn < int(rounds) or (rounds == "0" and not select.select([0], [], [], 0)[0]):
        turn += 1
        passes = pool.take(int(count), label, tell=lambda text: print(text, file=sys.stderr, flush=True))
        files = [Path(f"/proc/self/fd/{descriptor}").readlink() for descriptor in passes.descriptors]
        slots = ",".join(file.stem.removeprefix("slot-") for file in files)
        print("got", time.monotonic(), slots, flush=True)
        time.sleep(float(hold))
        print("gave", time.monotonic(), slots, flush=True)
        passes.release()


main()
