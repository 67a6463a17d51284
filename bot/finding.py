"""What somebody who looked at a part of the surroundings found, for `leadsman doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and how it is. `what` says what is lost and what to do where it is not ok."""

    subject: str
    verdict: Verdict
    what: str
