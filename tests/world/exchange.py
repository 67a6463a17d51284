"""One HTTP request to the world and its answer, kept in the world's request log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

API = "/api/v3"
"""Where GitHub Enterprise has its REST API; the web and git live beside it at the root."""


@dataclass(slots=True)
class Request:
    """One request as it came in, and what was answered (status None: no answer yet, or none at all)."""

    method: str
    path: str
    """Without the API's prefix, quoted as it was sent."""
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    template: str | None = None
    """`/repos/{owner}/{repo}`, as the OpenAPI description names the call; None for git and unknown paths."""
    status: int | None = None
    answer: Any = None

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def url(self) -> str:
        return self.path + (f"?{self.query}" if self.query else "")


@dataclass(slots=True)
class Answer:
    status: int
    body: Any = None
    """JSON; None = no body."""
    headers: dict[str, str] = field(default_factory=dict)
