"""The one door to git: a known environment, a deadline, and errors that show everything but secrets."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitops.credentials import Remote, censor_urls

NETWORK_SECONDS = 300.0
"""The deadline of what talks to a remote."""

TREE_SECONDS = 600.0
"""The deadline of what writes or reads a whole tree of files."""

PASSED = ("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK")
"""How this host reaches the network: all that a call that has a remote takes over from the bot's own environment."""

_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ServerAliveInterval=20",
    "GIT_LITERAL_PATHSPECS": "1",
    # A run can write into the repository it works in: what it puts there must not make the bot see other commits
    # than those it pushes.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
}

_SETTINGS = (
    # Nothing that a repository's own configuration names is ever started.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("credential.helper", ""),
    ("gpg.ssh.program", "ssh-keygen"),
    # Nothing is cached where a run could have written the cache.
    ("core.commitGraph", "false"),
    ("core.multiPackIndex", "false"),
    ("core.untrackedCache", "false"),
    # A working tree holds what the commit holds, all of it, byte by byte.
    ("core.autocrlf", "false"),
    ("core.fileMode", "true"),
    ("core.symlinks", "true"),
    ("core.sparseCheckout", "false"),
    ("core.splitIndex", "false"),
    # Git does what it is asked and nothing beside it.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("gc.worktreePruneExpire", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("push.followTags", "false"),
    ("push.gpgSign", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("transfer.advertiseSID", "false"),
    # What is asked for above (`GIT_GRAFT_FILE`) is no news in every error.
    ("advice.graftFileDeprecated", "false"),
    # The header with the token would follow a redirect to another host.
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    # A connection that says nothing for a minute is dead, also where the bot that would have ended it is.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "60"),
)


class GitError(Exception):
    """A git command that ended badly: what it was, its exit code (None: its time was up), what it said."""

    def __init__(self, argv: tuple[str, ...], code: int | None, stderr: str) -> None:
        self.argv = argv
        self.code = code
        self.stderr = stderr
        ending = "did not end in time" if code is None else f"ended with {code}"
        super().__init__(f"`{' '.join(argv)}` {ending}: {stderr.strip() or 'it said nothing'}")

    @property
    def brief(self) -> str:
        """One line for people: which command of git, and the last thing it said."""
        said = self.stderr.strip().splitlines() or [
            "it did not end in time" if self.code is None else "no reason given"
        ]
        return f"git {self.argv[1]}: {said[-1]}"


@dataclass(frozen=True, slots=True)
class Done:
    """A git command that has ended."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Its answer without the line's end; bytes that are not UTF-8 as `os.fsdecode` shows them."""
        return os.fsdecode(self.stdout).rstrip("\n")

    @property
    def items(self) -> list[str]:
        """The entries of an answer that was asked for with `-z`."""
        return os.fsdecode(self.stdout).split("\0")[:-1]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits, and with which ssh key (a file) the commits are signed, if any."""

    name: str
    email: str
    signing_key: Path | None = None

    def environment(self) -> dict[str, str]:
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        }


@dataclass(frozen=True, slots=True)
class Git:
    """Git at one repository, always named and never discovered. Safe to use from many threads."""

    git_dir: Path
    common_dir: Path | None = None
    """The repository that a linked worktree belongs to: given, since its `commondir` file is the run's to write."""
    work_tree: Path | None = None
    keep_open: tuple[int, ...] = ()
    """Descriptors git gets along: the lock it works under, which so outlives a bot that is killed."""

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        timeout: float = 60.0,
        remote: Remote | None = None,
        environment: Mapping[str, str] | None = None,
        settings: tuple[tuple[str, str], ...] = (),
        check: bool = True,
    ) -> Done:
        """Run `git ARGS` and give what came of it. `timeout` in seconds; then git and its children are killed.

        Only a call with a `remote` reaches anything outside, by the remote's own protocol alone, and sees its token.
        GitError if it does not end in time, is killed (that is no answer, and no "there is none") or, with `check`,
        ends with anything but 0.
        """
        argv = ("git", *args)
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.work_tree or self.git_dir.parent,
                env=self._environment(remote, environment or {}, settings),
                pass_fds=self.keep_open,
                start_new_session=True,  # so that one signal reaches its children, too
            )
        except FileNotFoundError as problem:
            if problem.filename != argv[0]:
                raise  # the folder is not there
            raise GitError(argv, 127, "git is not on PATH; install git 2.38 or later") from problem
        out, err, code = _finish(process, stdin, timeout)
        stderr = _censored(err.decode(errors="replace"), remote)
        if code is None or code < 0 or (check and code != 0):
            raise GitError(tuple(_censored(word, remote) for word in argv), code, stderr)
        return Done(code, out, stderr)

    @property
    def environment(self) -> dict[str, str]:
        """What git's child processes see, for a library that starts its own."""
        return self._environment(None, {}, ())

    def _environment(
        self, remote: Remote | None, more: Mapping[str, str], settings: tuple[tuple[str, str], ...]
    ) -> dict[str, str]:
        env = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, "GIT_DIR": str(self.git_dir)}
        env["GIT_ALLOW_PROTOCOL"] = ""
        if self.common_dir is not None:
            env["GIT_COMMON_DIR"] = str(self.common_dir)
        if self.work_tree is not None:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        if remote is not None:
            env["GIT_ALLOW_PROTOCOL"] = remote.protocol
            env |= {name: os.environ[name] for name in PASSED if name in os.environ}
            settings = (*settings, *remote.config())
        return {**env, **more, **config_environment((*_SETTINGS, *settings))}


def config_environment(settings: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Settings as the variables git reads them from: they win over every file and show in no process list."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def _finish(process: subprocess.Popen[bytes], stdin: bytes, timeout: float) -> tuple[bytes, bytes, int | None]:
    """Its output and exit code; None for the code if it had to be killed."""
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        return *_kill_session(process), None
    except BaseException:
        _kill_session(process)
        raise
    return out, err, process.returncode


def _kill_session(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End it and its children, and give what they had said."""
    if process.returncode is None:  # not waited for yet, so the number is still its own
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=1)
    except subprocess.TimeoutExpired as stuck:  # somebody who left the session holds the pipes
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
        return stuck.output or b"", stuck.stderr or b""


def _censored(text: str, remote: Remote | None) -> str:
    return censor_urls(remote.censor(text) if remote is not None else text)
