"""A log is put right once its command has ended: masked, measured, and as large as it likes to be."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from bot.logs import PIECE, masked, masked_tail, settle, tail
from bot.masking import HELD_BACK, Masking
from bot.secret import Secret

SECRET = "hunter2-hunter2"
TOKEN = "ghp_" + "a" * 36
masking = Masking([Secret(SECRET)])


def test_secrets_are_taken_out_of_the_file_and_the_digest_is_of_what_stays(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(f"a {SECRET}\nhttps://u:pw@host/\n".encode() + b"\xff\x00 raw\n" + TOKEN.encode())
    log.chmod(0o600)
    found = settle(log, masking, exit_code=0)
    raw = log.read_bytes()
    assert raw == b"a ***\nhttps://***@host/\n\xff\x00 raw\n***"
    assert (len(raw), hashlib.sha256(raw).hexdigest()) == (found.size, found.sha256)
    assert 0o600 == log.stat().st_mode & 0o777
    assert found == settle(log, masking, exit_code=0), "again, after a crash"
    assert [log] == list(tmp_path.iterdir())


def test_a_log_without_a_secret_is_left_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"\xfe plain\n3 passed in 0.1s\n")
    inode = log.stat().st_ino
    found = settle(log, masking, exit_code=0)
    assert inode == log.stat().st_ino
    assert found.counts is not None
    assert 3 == found.counts.passed


@pytest.mark.parametrize("kind", ["absent", "fifo", "link", "folder"])
def test_what_is_no_plain_file_is_empty_and_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "worker.log"
    (tmp_path / "other").write_text("9 passed in 0.1s\n")
    match kind:
        case "fifo":
            os.mkfifo(log)
        case "link":
            log.symlink_to("other")
        case "folder":
            log.mkdir()
    found = settle(log, masking, exit_code=0)
    assert (0, hashlib.sha256().hexdigest(), None) == (found.size, found.sha256, found.counts)
    assert "" == tail(log, 100)


@pytest.mark.parametrize("seed", range(60))
def test_a_text_in_pieces_is_masked_as_if_it_were_whole(seed: int) -> None:
    dice = random.Random(seed)
    words = [SECRET, TOKEN, "https://u:pw@h/", "Authorization: Bearer abc", "\n", "x" * 3000, "y", " ", "sk-", "é"]
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE\n" * 40 + "-----END RSA PRIVATE KEY-----"
    text = " ".join(dice.choice([*words, key]) for _ in range(200))
    pieces, start = [], 0
    while start < len(text):
        stop = start + dice.randrange(1, 5000)
        pieces.append(text[start:stop])
        start = stop
    given, masked = zip(*masking.pieces(pieces), strict=True)
    assert text == "".join(given)
    assert masking(text) == "".join(masked)


def test_a_key_that_never_ends_is_blotted_out_as_far_as_is_held_back(tmp_path: Path) -> None:
    begun = ["-----BEGIN PRIVATE KEY-----\n", *["MIIE" * 16 + "\n"] * (HELD_BACK // 65), "after\n"]
    masked = "".join(text for _, text in masking.pieces(begun))
    assert "MIIE" not in masked


def test_one_endless_line_is_no_trouble(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"x" * 3_000_000 + b" " + SECRET.encode() + b" " + b"y" * 3_000_000)
    found = settle(log, masking, exit_code=0)
    assert 6_000_005 == found.size
    assert SECRET.encode() not in log.read_bytes()
    assert 100 == len(tail(log, 100))


# ── before it is put right ───────────────────────────────────────────────────────────────────────────────────────────


def test_any_part_of_a_log_is_masked_wherever_it_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIE\n" * 60 + "-----END PRIVATE KEY-----"
    raw = f"é {TOKEN} https://u:pw@h/ {key} {SECRET}\nend\n".encode() + b"\xff\n"
    log.write_bytes(raw)
    with log.open("rb") as file:
        whole = b"".join(masked(file.fileno(), 0, len(raw), masking, grows=True))
        assert len(raw) == len(whole)
        assert all(secret not in whole for secret in (b"aaaa", b"pw", b"MIIE", b"hunter2"))
        for start in range(0, len(raw), 3):
            for stop in (start + 1, start + 50, len(raw)):
                assert whole[start:stop] == b"".join(
                    masked(file.fileno(), start, min(stop, len(raw)), masking, grows=True)
                )


def test_a_secret_on_the_border_of_two_pieces_is_masked(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"x" * (PIECE - 20) + b" " + TOKEN.encode() + b" end\n")
    with log.open("rb") as file:
        whole = b"".join(masked(file.fileno(), 0, log.stat().st_size, masking, grows=True))
    assert b" " + b"*" * len(TOKEN) + b" end\n" == whole[PIECE - 20 :]


def test_the_end_of_a_log_shows_no_key_that_begins_before_it(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("-----BEGIN PRIVATE KEY-----\n" + "MIIE\n" * 500 + "-----END PRIVATE KEY-----\nlast\n")
    assert "MIIE" not in masked_tail(log, 400, masking, grows=True)
    assert masked_tail(log, 400, masking, grows=True).endswith("*\nlast\n")
    assert "" == masked_tail(tmp_path / "none", 400, masking, grows=True)


def test_what_looks_like_the_beginning_of_a_secret_is_one_only_while_the_log_grows(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("see https://host.example")
    assert "see https://host.example" == masked_tail(log, 400, masking, grows=False)
    assert "see https" + "*" * 15 == masked_tail(log, 400, masking, grows=True)
