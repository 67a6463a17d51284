"""A door in a process of its own, to be killed: prints its port, then serves the home that it was given."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.webhooks.senders import House
from webhooks.receiver import Application
from webhooks.server import Server, bound

if __name__ == "__main__":
    house = House(Path(sys.argv[1]), limit=1_000_000)
    server = Server(Application(house.door, dict), bound("127.0.0.1", 0))
    print(server.address[1], flush=True)
    server.run()
