"""The key is made once and survives a crash; an envelope is what DSSE says, and nothing is believed without it."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.masking import Masking
from bot.signing import KEY_FILE, Malformed, SigningKey, envelope, own_key, public_key, sign
from bot.statement import carried, carried_in, read, signed, without_carried
from tests.bot.reporting import TIP, report


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = own_key(tmp_path)
    assert 0o600 == stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode)
    assert first.public.id == own_key(tmp_path).public.id
    assert [KEY_FILE] == [path.name for path in tmp_path.iterdir()]


def test_of_many_that_make_it_at_once_all_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        ids = {key.public.id for key in pool.map(own_key, [tmp_path] * 16)}
    assert 1 == len(ids)
    assert [KEY_FILE] == [path.name for path in tmp_path.iterdir()]


_DIES = """
import os, signal, sys
from pathlib import Path
from bot import statefiles
from bot.signing import own_key
real = os.fsync
def dies(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = dies
own_key(Path(sys.argv[1]))
"""


def test_a_crash_while_it_is_written_leaves_no_half_a_key(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _DIES, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert -9 == done.returncode
    assert not (tmp_path / KEY_FILE).exists()
    assert own_key(tmp_path).public.id == own_key(tmp_path).public.id


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"])
def test_a_broken_key_is_never_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / KEY_FILE).write_text(text)
    with pytest.raises(UserError, match="Put the old one back"):
        own_key(tmp_path)
    assert text == (tmp_path / KEY_FILE).read_text()


def test_what_is_signed_is_what_dsse_says(key: SigningKey) -> None:
    found = json.loads(sign(key, b'{"a": 1}'))
    assert {"payloadType", "payload", "signatures"} == set(found)
    assert b'{"a": 1}' == base64.b64decode(found["payload"])
    (signature,) = found["signatures"]
    assert key.public.id == signature["keyid"]
    # https://github.com/secure-systems-lab/dsse/blob/master/protocol.md#signature-definition
    key.public.key.verify(base64.b64decode(signature["sig"]), b'DSSEv1 28 application/vnd.in-toto+json 8 {"a": 1}')


def test_an_envelope_is_signed_by_who_signed_it_and_by_nobody_else(key: SigningKey, tmp_path: Path) -> None:
    other = own_key(_made(tmp_path / "other"))
    text = sign(key, b"x")
    assert envelope(text).signed_by(key.public)
    assert not envelope(text).signed_by(other.public)
    for part in ("payload", "payloadType"):
        changed = json.loads(text) | {part: base64.b64encode(b"y").decode()}
        assert not envelope(json.dumps(changed)).signed_by(key.public)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"payload": 1}', '{"payloadType": "a", "payload": "!", "signatures": []}', "[" * 100_000],
)
def test_what_is_no_envelope_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        envelope(text)


def test_a_public_key_is_read_as_it_was_printed(key: SigningKey) -> None:
    assert key.public.id == public_key(key.public.pem.encode()).id
    with pytest.raises(UserError, match="leadsman key"):
        public_key(b"nothing")


def test_the_statement_names_the_commit_and_the_logs_by_digest(key: SigningKey) -> None:
    text = signed(report(), key, Masking())
    said = json.loads(base64.b64decode(json.loads(text)["payload"]))
    assert "https://in-toto.io/Statement/v1" == said["_type"]
    assert "leadsman/run-report/v1" == said["predicateType"]
    commit, *logs = said["subject"]
    assert {"name": report().ref, "digest": {"gitCommit": TIP}} == commit
    assert [{"sha256": "c" * 64}] * 4 == [log["digest"] for log in logs]
    assert read(text).report == report()


def test_a_comment_carries_the_envelope_unseen(key: SigningKey) -> None:
    text = signed(report(), key, Masking())
    comment = f"Hello\n{carried(text)}\n"
    assert [text] == list(carried_in(comment))
    assert "Hello\n\n" == without_carried(comment)
    assert [] == list(carried_in("<!-- leadsman report=AAAA --> <!-- leadsman report=!!! -->"))
