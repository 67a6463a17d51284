"""What every test stands on: no way into the user's home, no settings from outside, no tool that is missed silently."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis
from xdist.scheduler import LoadScopeScheduling

from tests import browser


class Tool(NamedTuple):
    """Something a test can't run without."""

    there: Callable[[], bool]
    install: str


def _on_path(*names: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(name) for name in names)


TOOLS = {
    "tmux": Tool(_on_path("tmux"), "apt-get install tmux"),
    "npm": Tool(_on_path("npm", "node"), "apt-get install nodejs npm"),
    "chromium": Tool(lambda: bool(browser.program()), "apt-get install chromium"),
    "redmine": Tool(
        lambda: os.geteuid() == 0 and Path("/usr/share/redmine/config.ru").exists() and bool(shutil.which("puma")),
        "as root, tests/redmine/up.sh up",
    ),
    "postgresql": Tool(lambda: any(Path("/usr/lib/postgresql").glob("*/bin/initdb")), "apt-get install postgresql"),
    "flock": Tool(_on_path("flock", "bash", "shuf"), "apt-get install util-linux bash coreutils"),
    "make": Tool(_on_path("make"), "apt-get install make"),
    "perl": Tool(_on_path("perl"), "apt-get install perl"),
    "mount": Tool(lambda: os.geteuid() == 0 and bool(shutil.which("mount")), "run the tests as root, to mount a tmpfs"),
    "zsh": Tool(_on_path("zsh"), "apt-get install zsh"),
    "fish": Tool(_on_path("fish"), "apt-get install fish"),
    "namespaces": Tool(
        lambda: (
            subprocess.call(["unshare", "--user", "--map-root-user", "--mount", "true"], stderr=subprocess.DEVNULL) == 0
        ),
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    "systemd": Tool(_on_path("systemd-analyze"), "apt-get install systemd"),
}
"""What `@pytest.mark.needs(...)` may name."""


for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    # A job in the background of a script ignores these, and so would everything that the tests start.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)


REQUIRE_ALL = os.environ.get("LEADSMAN_REQUIRE") == "all"
"""Read before the environment is emptied."""


hypothesis.register_profile(
    "leadsman", deadline=None, derandomize=REQUIRE_ALL, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis.load_profile("leadsman")
"""How long an example takes says nothing on a busy host; and CI tries the same ones each time."""

sys.dont_write_bytecode = False
"""Where the environment says otherwise, each of some thousand processes compiles Leadsman anew."""

OF_OTHERS = ("EMAIL", "TMUX", "TMUX_PANE", "PYTHONDONTWRITEBYTECODE")

TOGETHER = {"redmine": "redmine", "test_passes": "passes", "test_load": "passes"}
"""Tests that share one thing of the host, or measure what they wait for: a word of their path -> one worker for all."""


class _Together(LoadScopeScheduling):
    """Most tests wait for processes, so several workers run at once; some go one after the other, on one of them.

    What goes together is begun first, the longest row before the others. (xdist's own `loadgroup` writes the group into
    the tests' ids, which pytest 9.2 does not let it.)
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group for word, group in TOGETHER.items() if word in file), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Together | None:
    return _Together(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A missing tool skips the test and says what to install; with LEADSMAN_REQUIRE=all, as in CI, it fails it."""
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            tool = TOOLS[name]
            if not tool.there():
                told = f"needs {name}: {tool.install}"
                if REQUIRE_ALL:
                    pytest.fail(told, pytrace=False)
                pytest.skip(told)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The environment of a stranger: a home that can't exist, no identity, no settings of this user's git or shell."""
    barrier = tmp_path_factory.mktemp("stranger") / "no-home"
    barrier.write_text("A home below this file can be neither read nor made.\n")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("GIT_", "XDG_", "LEADSMAN_", "SSH_")) or name in OF_OTHERS:
                patch.delenv(name)
        patch.setenv("HOME", str(barrier / "home"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        yield
