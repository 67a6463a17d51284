"""What the other tests rely on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def passed_on(*names: str, **options: object) -> dict[str, str]:
    """The worker on which each of the tests passed."""
    argv = [sys.executable, "-m", "pytest", "-v", "--numprocesses", "2", "--dist", "loadgroup", *names]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False, **options)  # type: ignore[call-overload]
    return {test: worker for worker, test in re.findall(r"\[(gw\d)\].* PASSED (.*?) *$", done.stdout, re.MULTILINE)}


def test_tests_that_share_a_thing_of_the_host_are_sent_to_one_worker() -> None:
    found = passed_on("tests/bot/test_passview.py", "tests/bot/test_passes_size.py", "tests/bot/test_admission.py")
    shared = {worker for test, worker in found.items() if "test_passes" in test}
    assert (1, 2) == (len(shared), len(set(found.values()))), found


def test_the_tests_hear_control_c_whatever_their_caller_ignores() -> None:
    me = f"{Path(__file__).relative_to(ROOT)}::test_no_signal_is_ignored"
    ignore = lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)]  # noqa: E731
    assert passed_on(me, preexec_fn=ignore).keys() == {me}


def test_no_signal_is_ignored() -> None:
    done = subprocess.run(["grep", "SigIgn", "/proc/self/status"], stdout=subprocess.PIPE, text=True, check=True)
    ignored = int(done.stdout.split()[1], 16)
    assert [] == [number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT) if ignored >> number - 1 & 1]
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
