"""The one door: what gets in, what gets out, and what a deadline ends."""

from __future__ import annotations

import base64
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from gitops.credentials import Remote
from gitops.git import Git, GitError
from gitops.mirror import Mirror
from tests.gitops.folk import Folder, start_actor

TOKEN = "ghp_s3cr3t/+tok en"

PATIENCE = (1.0, 5.0, 25.0)
"""Deadlines, of which one leaves git the time to begin, on a host with however much else to do."""


class Secret:
    def reveal(self) -> str:
        return TOKEN


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def command_lines() -> list[str]:
    lines = []
    for process in psutil.process_iter():
        try:
            lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return lines


def forms_of(token: str) -> list[str]:
    return [token, base64.b64encode(token.encode()).decode(), base64.b64encode(f"bot:{token}".encode()).decode()]


def test_an_error_shows_command_code_and_words(tmp_path: Path) -> None:
    Git(tmp_path / "x.git").run("init", "--quiet", "--bare", str(tmp_path / "x.git"))
    with pytest.raises(GitError) as caught:
        Git(tmp_path / "x.git").run("rev-parse", "--verify", "nothing")
    assert caught.value.code == 128
    assert str(caught.value) == "`git rev-parse --verify nothing` ended with 128: fatal: Needed a single revision"
    assert caught.value.brief == "git rev-parse: fatal: Needed a single revision"


def test_a_git_that_was_killed_has_not_answered(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="ended with -9"):
        Git(tmp_path).run("-c", "alias.die=!kill -9 $PPID", "die", check=False)


def test_a_git_that_is_not_there_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        Git(tmp_path / "nowhere/repository").run("version")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError) as missed:
        Git(tmp_path / "repository").run("version")
    assert "git version: git is not on PATH; install git 2.38 or later" == missed.value.brief


def test_the_environment_is_built_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GITHUB_TOKEN", "GIT_TRACE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    git = Git(tmp_path / "x.git")
    git.run("init", "--quiet", "--bare", str(tmp_path / "x.git"))
    shown = git.run("-c", "alias.env=!env", "env").text
    assert "elsewhere" not in shown
    assert "HOME=/nonexistent" in shown
    assert f"GIT_DIR={tmp_path / 'x.git'}" in shown


def test_a_deadline_ends_git_and_what_it_started(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append([line for line in command_lines() if self.server_url() in line])
            self.rfile.read()  # until git is gone

        def server_url(self) -> str:
            return f"http://127.0.0.1:{self.request.getsockname()[1]}"

        def log_message(self, *args: Any) -> None:
            pass

    with serving(Silent) as url:
        mirror = Mirror(tmp_path / "x.git", Remote(f"{url}/x.git", "bot", Secret()))
        mirror.ensure()
        for patience in PATIENCE:
            with pytest.raises(GitError, match="did not end in time") as caught:
                mirror.git.run("ls-remote", mirror.remote.url, remote=mirror.remote, timeout=patience)
            left = [line for line in command_lines() if url in line]
            if seen and len(seen[-1]) >= 2:
                break
    assert caught.value.code is None
    assert len(seen[-1]) >= 2, "git and its child for http were there while it waited"
    assert not any(form in line for line in seen[-1] for form in forms_of(TOKEN))
    assert left == []


def test_a_deadline_holds_for_a_child_that_left_the_session(tmp_path: Path) -> None:
    """It keeps git's output open for as long as it likes; nobody waits for it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    git = Git(tmp_path / "x.git")
    git.run("init", "--quiet", "--bare", str(tmp_path / "x.git"))
    left = tmp_path / "left"
    alias = f"alias.stay=!setsid sh -c 'touch {left}; read -r _ <{pipe}' & read -r _ <{pipe}"
    for patience in PATIENCE:
        with pytest.raises(GitError, match="did not end in time"):
            git.run("-c", alias, "stay", timeout=patience)
        if left.exists():
            break
    pipe.write_text("\n")  # somebody still reads: the one who left


def test_an_interrupted_bot_takes_its_git_along(tmp_path: Path) -> None:
    asked = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            self.rfile.read()

        def log_message(self, *args: Any) -> None:
            pass

    with serving(Silent) as url:
        mirror = Mirror(tmp_path / "x.git", Remote(f"{url}/x.git"))
        mirror.ensure()
        actor = start_actor("refresh", mirror)
        assert actor.says() == "ready"
        actor.go()
        assert asked.wait(60)
        actor.process.send_signal(signal.SIGINT)
        assert actor.process.wait(60) != 0
        actor.close()
        assert [line for line in command_lines() if url in line] == []


def test_a_token_opens_its_own_host_and_shows_nowhere(tmp_path: Path, origin: Folder, ada: Folder) -> None:
    origin.git("update-server-info")
    expected = f"Basic {base64.b64encode(f'bot:{TOKEN}'.encode()).decode()}"
    lines: list[str] = []

    class Guarded(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def do_GET(self) -> None:
            lines.extend(command_lines())
            if self.headers.get("Authorization") == expected:
                super().do_GET()
            else:
                self.send_error(401)

        def log_message(self, *args: Any) -> None:
            pass

    with serving(Guarded) as url:
        mirror = Mirror(tmp_path / "m.git", Remote(f"{url}/origin.git", "bot", Secret()))
        mirror.ensure()
        mirror.refresh()
        head = mirror.git.run("rev-parse", "refs/remotes/origin/main").text
        stranger = Mirror(tmp_path / "n.git", Remote(f"{url}/origin.git"))
        stranger.ensure()
        with pytest.raises(GitError, match=r"401|could not read Username"):
            stranger.refresh()
    assert head == ada.git("rev-parse", "main")
    assert any(url in line for line in lines)
    assert not any(form in line for line in lines for form in forms_of(TOKEN))
    for file in (path for path in (tmp_path / "m.git").rglob("*") if path.is_file()):
        assert not any(form.encode() in file.read_bytes() for form in forms_of(TOKEN)), file


def test_a_token_does_not_follow_a_redirect(tmp_path: Path) -> None:
    asked: list[str] = []

    class Thief(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization", ""))
            self.send_error(404)

        def log_message(self, *args: Any) -> None:
            pass

    with serving(Thief) as thief:

        class Redirecting(Thief):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", thief + self.path)
                self.end_headers()

        with serving(Redirecting) as url:
            mirror = Mirror(tmp_path / "x.git", Remote(f"{url}/x.git", "bot", Secret()))
            mirror.ensure()
            with pytest.raises(GitError):
                mirror.refresh()
    assert asked == []


def test_an_error_never_shows_a_token(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "x.git", Remote(str(tmp_path / "none.git"), "bot", Secret()))
    mirror.ensure()
    for form in forms_of(TOKEN):
        with pytest.raises(GitError) as caught:
            mirror.git.run(
                "rev-parse", "--verify", f"{form}-x", "https://ada:other@example.org/x", remote=mirror.remote
            )
        assert form not in str(caught.value)
        assert "other" not in str(caught.value)
        assert "https://***@example.org/x" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("ext::sh -c id", "fd::7", "git://example.org/x", "ftp://example.org/x", "-uid", "", "a\nb"),
        *("https://tok@example.org/x", "https://ada:tok@example.org/x"),
    ],
)
def test_a_remote_that_would_run_something_or_store_a_token_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"[Rr]epositor"):
        Remote(url)


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("/srv/x.git", "file"),
        ("./a:b", "file"),
        ("file:///srv/x.git", "file"),
        ("https://example.org/x", "https"),
        ("HTTP://example.org/x", "http"),
        ("ssh://git@example.org/x", "ssh"),
        ("git@example.org:x.git", "ssh"),
    ],
)
def test_the_protocol_is_the_one_git_will_speak(url: str, protocol: str) -> None:
    assert protocol == Remote(url).protocol


def test_only_the_remotes_own_protocol_is_spoken(tmp_path: Path, origin: Folder) -> None:
    mirror = Mirror(tmp_path / "m.git", Remote("https://127.0.0.1:1/x.git"))
    mirror.ensure()
    with pytest.raises(GitError, match="transport 'file' not allowed"):
        mirror.git.run("ls-remote", "--", str(origin.path), remote=mirror.remote)
    with pytest.raises(GitError, match="transport 'file' not allowed"):
        mirror.git.run("ls-remote", "--", str(origin.path))
