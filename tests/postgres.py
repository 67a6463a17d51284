"""A PostgreSQL of the tests' own: on a socket in a folder, reached by nobody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

BIN = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=Path("initdb")).parent
QUICK = ("listen_addresses = ''", "fsync = off", "full_page_writes = off", "max_connections = 200")
"""What is lost with the machine is lost: no test takes its power away."""


class Cluster:
    """One server and its databases. `root` may not run it, so it runs as `postgres` then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._count = 0

    def make(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.writelines(f"{line}\n" for line in (*QUICK, f"unix_socket_directories = '{self._folder}'"))
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        """At once, whoever is connected."""
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def database(self) -> str:
        """The address of a new, empty one."""
        self._count += 1
        name = f"store{self._count}"
        self._run("createdb", "-h", str(self._folder), "-U", "postgres", name)
        return f"postgresql://postgres@/{name}?host={quote(str(self._folder), safe='')}"

    def _run(self, program: str, *words: str) -> None:
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        argv = [*(as_postgres if os.geteuid() == 0 else ()), str(BIN / program), *words]
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        subprocess.run(
            argv, cwd="/", env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60
        )


@contextmanager
def running() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="leadsman-pg-", dir="/tmp"))  # a socket's path is short
    cluster = Cluster(folder)
    try:
        cluster.make()
        yield cluster
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
