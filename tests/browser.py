"""Chromium without a window, which shows a page and says what became of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-quic"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"),
)


def program() -> str | None:
    """The first that is there."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def document(page: Path, folder: Path) -> tuple[str, str]:
    """What stands in `page` once it was loaded and its scripts have run, and what the browser said meanwhile. `folder`
    takes its profile."""
    chromium = program()
    assert chromium is not None
    done = subprocess.run(
        [chromium, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)},
    )
    return done.stdout, done.stderr
