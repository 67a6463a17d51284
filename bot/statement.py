"""A report as an in-toto Statement in a signed envelope: what it is about by digest, and what it says.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bot import codec, signing
from bot.model import Published
from bot.reports import Report
from bot.signing import Envelope, Malformed, SigningKey

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "leadsman/run-report/v1"

LARGEST = 16 << 20
"""Bytes of a report that are read at all."""

_CARRIED = re.compile(r"<!-- leadsman report=([A-Za-z0-9+/=]+) -->")


@dataclass(frozen=True, slots=True)
class Subject:
    """What the report is about: `kind` is `gitCommit` or `sha256`."""

    name: str
    kind: str
    digest: str


@dataclass(frozen=True, slots=True)
class Statement:
    subjects: tuple[Subject, ...]
    report: Report

    @property
    def logs(self) -> tuple[Subject, ...]:
        return tuple(subject for subject in self.subjects if subject.kind == "sha256")


def signed(report: Report, key: SigningKey, clean: Callable[[str], str]) -> str:
    """`report.json`. `clean` takes the secrets out of every text before it is signed."""
    return signing.sign(key, _encoded(report, clean))


def opened(found: Envelope) -> Statement:
    """What an envelope says, whoever signed it. Raises `Malformed`."""
    if found.kind != signing.PAYLOAD_TYPE:
        raise Malformed(f"its payload is {found.kind[:80]!r}, not an in-toto statement")
    try:
        said: Any = json.loads(found.payload)
        if (said["_type"], said["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
            raise Malformed(f"its predicate is {str(said['predicateType'])[:80]!r}, not {PREDICATE_TYPE!r}")
        subjects = tuple(
            Subject(str(one["name"]), str(kind), str(digest))
            for one in said["subject"]
            for kind, digest in one["digest"].items()
        )
        return Statement(subjects, codec.load(Report, json.dumps(said["predicate"])))
    except (codec.Unreadable, ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise Malformed(f"it is no statement of a run ({str(problem).splitlines()[0][:200]})") from problem


def read(text: str | bytes) -> Statement:
    """What `report.json` says. Raises `Malformed`."""
    return opened(signing.envelope(text))


# ── on its way in a comment ──────────────────────────────────────────────────────────────────────────────────────


def carried(envelope: str) -> str:
    """The envelope as an HTML comment that a forge keeps and nobody sees."""
    return f"<!-- leadsman report={base64.b64encode(zlib.compress(envelope.encode(), 9)).decode()} -->"


def carried_in(text: str) -> Iterator[str]:
    """The envelopes that a comment carries. What can't be read is left out."""
    for found in _CARRIED.finditer(text):
        try:
            unpacked = zlib.decompressobj().decompress(base64.b64decode(found[1], validate=True), LARGEST)
            yield unpacked.decode()
        except (ValueError, zlib.error):
            continue


def without_carried(text: str) -> str:
    return _CARRIED.sub("", text)


# ── the statement itself ─────────────────────────────────────────────────────────────────────────────────────────


def _encoded(report: Report, clean: Callable[[str], str]) -> bytes:
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": _mapped(_subjects(report), clean),
        "predicateType": PREDICATE_TYPE,
        "predicate": _mapped(codec.plain(Report, report), clean),
    }
    return json.dumps(statement, ensure_ascii=False, separators=(",", ":")).encode()


def _subjects(report: Report) -> list[dict[str, object]]:
    """The published commit and the logs. A statement has to be about something: the last resort is the base."""
    found: list[dict[str, object]] = []
    if isinstance(report.outcome, Published):
        found.append({"name": report.outcome.ref, "digest": {"gitCommit": report.outcome.tip}})
    found += [{"name": ran.log, "digest": {"sha256": ran.log_sha256}} for ran in report.all_ran]
    return found or [{"name": "base", "digest": {"gitCommit": report.base}}]


def _mapped(value: Any, clean: Callable[[str], str]) -> Any:
    """A JSON value with each text cleaned, and fit for UTF-8 afterwards."""
    match value:
        case str():
            return clean(value).encode("utf-8", "backslashreplace").decode()
        case list():
            return [_mapped(item, clean) for item in value]
        case dict():
            # Our own word that tells one kind of outcome from another is no text, whatever somebody's password is.
            return {key: item if key == "kind" else _mapped(item, clean) for key, item in value.items()}
        case _:
            return value
