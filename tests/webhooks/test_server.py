"""The server over real sockets: sizes, half-sent bodies, refusals that arrive, and an end that loses nothing."""

from __future__ import annotations

import contextlib
import http.client
import logging
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.webhooks.senders import SECRET, House, answer, ask, comment, connected, head, serving, signed
from webhooks.receiver import SIZE
from webhooks.server import CONTROL, LARGE_AT_ONCE, SMALL, Server, bound
from webhooks.signature import sign

BODY = comment()
LARGE = BODY.ljust(SIZE)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


@pytest.fixture
def server(house: House) -> Iterator[Server]:
    with serving(house, checks={"store": "ok"}) as server:
        yield server


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_a_signed_delivery_is_accepted_over_a_connection_that_is_kept(server: Server, house: House) -> None:
    with connected(server) as peer:
        for n in range(3):
            headers = {**signed(BODY, delivery=f"d-{n}"), "content-length": str(len(BODY))}
            peer.sendall(head(headers) + BODY)
            said = answer(peer)
            assert (said.status, said.word) == (202, "accepted")
            assert said.headers["content-type"] == "application/json"
            assert "server" not in said.headers
            assert "via" not in said.headers
    assert len(house.inbox.listing()) == 3


def test_any_client_gets_its_answers(server: Server) -> None:
    url = f"http://127.0.0.1:{server.address[1]}"
    assert requests.post(f"{url}/webhooks/github", BODY, headers=signed(BODY), timeout=60).status_code == 202
    assert requests.post(f"{url}/webhooks/github", BODY, timeout=60).status_code == 401
    assert requests.get(f"{url}/webhooks/github", timeout=60).headers["Allow"] == "POST"
    assert requests.post(f"{url}/webhooks/nobody", BODY, timeout=60).status_code == 404
    assert requests.get(f"{url}/healthz", timeout=60).json() == {"status": "ok"}
    assert requests.get(f"{url}/readyz", timeout=60).json() == {"status": "ok", "checks": {"store": "ok"}}


def test_25_mib_are_taken_and_one_byte_more_is_413(server: Server, house: House) -> None:
    assert ask(server, LARGE, signed(LARGE)).status == 202
    more = LARGE + b" "
    assert ask(server, more, signed(more, delivery="d-2")).status == 413
    assert [entry.size for entry in house.inbox.listing()] == [SIZE]


@pytest.mark.parametrize("kind", ["signed", "unsigned"])
def test_a_client_that_sends_it_all_before_it_reads_still_gets_its_refusal(server: Server, kind: str) -> None:
    url = f"http://127.0.0.1:{server.address[1]}/webhooks/github"
    body = LARGE + b" " if kind == "signed" else LARGE
    found = requests.post(url, body, headers=signed(body) if kind == "signed" else {}, timeout=60)
    assert found.status_code == (413 if kind == "signed" else 401)


@pytest.mark.parametrize(
    ("size", "status"),
    [
        (str(SIZE + 1), 413),
        ("99999999999999", 413),
        ("9" * 5000, 400),
        ("-1", 400),
        ("0x10", 400),
        ("1, 2", 400),
    ],
)
def test_a_size_that_is_too_large_or_none_is_refused_before_any_body(server: Server, size: str, status: int) -> None:
    with connected(server) as peer:
        peer.sendall(head({**signed(BODY), "content-length": size}))
        assert answer(peer).status == status


def test_whoever_cannot_be_let_in_is_not_asked_for_a_large_body(server: Server) -> None:
    for headers, path, status in (
        ({}, "/webhooks/github", 401),
        (signed(BODY), "/webhooks/here", 401),
        (signed(BODY), "/webhooks/nobody", 404),
        (signed(BODY), "/webhooks/open", 403),
        (signed(BODY), "/healthz", 413),
    ):
        with connected(server) as peer:
            announced = {**headers, "content-length": str(SMALL + 1), "expect": "100-continue"}
            peer.sendall(head(announced, path=path))
            said = answer(peer)
            assert (path, status) == (path, said.status)
            assert said.headers["connection"] == "close"
            assert peer.recv(1) == b""


def test_whoever_may_come_in_is_asked_for_the_body(server: Server) -> None:
    body = BODY.ljust(SMALL + 1)
    with connected(server) as peer:
        peer.sendall(head({**signed(body), "content-length": str(len(body)), "expect": "100-continue"}))
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(body)
        assert answer(peer).status == 202


@pytest.mark.parametrize("size", [1, 100, 65536])
def test_a_body_in_chunks_is_a_body(server: Server, size: int) -> None:
    with connected(server) as peer:
        peer.sendall(head({**signed(BODY), "transfer-encoding": "chunked"}) + chunked(BODY, size))
        assert answer(peer).status == 202


def test_chunks_without_end_are_413_and_without_sense_400(server: Server, house: House) -> None:
    with connected(server) as peer:
        peer.sendall(head({**signed(BODY), "transfer-encoding": "chunked"}))
        piece = chunked(bytes(1 << 20), 1 << 20)[:-5]
        for _ in range(26):
            peer.sendall(piece)
        assert answer(peer).status == 413
    for nonsense in (b"zz\r\n", b"5\r\nabcdefgh", b"1;" + b"x" * (CONTROL + 1)):
        with connected(server) as peer:
            peer.sendall(head({**signed(BODY), "transfer-encoding": "chunked"}) + nonsense)
            assert answer(peer).status == 400
    assert house.inbox.listing() == ()


def test_chunks_of_a_stranger_are_not_taken_in(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with connected(server) as peer:
        peer.sendall(head({"transfer-encoding": "chunked"}))
        assert answer(peer).status == 401
    assert "/webhooks/github: unsigned, before all of its body" in caplog.messages


def test_a_body_that_breaks_off_is_nothing(server: Server, house: House) -> None:
    with connected(server) as peer:
        peer.sendall(head({**signed(BODY), "content-length": str(len(BODY))}) + BODY[:-1])
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(100) == b""
    short = {**signed(BODY), "content-length": str(len(BODY) - 1)}
    with connected(server) as peer:
        peer.sendall(head(short) + BODY)
        assert answer(peer).status == 401
    assert house.inbox.listing() == ()


def test_a_strangers_large_body_never_reaches_the_disk(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "no-folder-for-temporary-files"
    monkeypatch.setattr("tempfile.tempdir", str(nowhere))
    with serving(house) as server:
        forged = {**signed(LARGE), "x-hub-signature-256": "sha256=" + "0" * 64}
        assert ask(server, LARGE, forged).status == 401
        assert ask(server, LARGE, signed(LARGE)).status == 202


def test_only_so_many_large_bodies_are_taken_in_at_once_and_small_ones_go_on(server: Server) -> None:
    body = BODY.ljust(SMALL + 1)
    request = head({**signed(body), "content-length": str(len(body)), "expect": "100-continue"})
    peers = [connected(server) for _ in range(LARGE_AT_ONCE + 1)]
    for peer in peers[:-1]:
        peer.sendall(request)
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    peers[-1].sendall(request)
    assert (answer(peers[-1]).status, ask(server, BODY, signed(BODY, delivery="d-2")).status) == (503, 202)
    peers[0].sendall(body)
    assert answer(peers[0]).status == 202
    peers[1].close()
    for _ in range(2):  # one was answered, one went away: there is room for two
        with connected(server) as peer:
            peer.sendall(request)
            assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    for peer in peers:
        peer.close()


def test_a_request_that_trickles_in_without_end_is_cut_off(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.server.PATIENCE", 0.0)
    with serving(house) as server, connected(server) as peer:
        peer.sendall(head({**signed(BODY), "content-length": "100"}) + b"{")
        for _ in range(100):  # each that comes wakes the loop, which then looks for the late
            server._listener.next_channel_cleanup = 0
            with connected(server) as other, contextlib.suppress(OSError):  # without patience it may be late itself
                other.sendall(head({"content-length": "0"}))
                other.recv(100)
            if select.select([peer], [], [], 0)[0]:
                break
        assert peer.recv(1) == b""


def test_headers_without_end_are_refused(server: Server) -> None:
    with connected(server) as peer:
        peer.sendall(b"POST /webhooks/github HTTP/1.1\r\nx: " + b"y" * 70_000)
        assert answer(peer).status == 431


def test_a_header_sent_twice_is_no_signature(server: Server) -> None:
    good = head({**signed(BODY), "content-length": str(len(BODY))})
    twice = good.replace(b"x-hub-signature-256", b"x-hub-signature-256: sha256=bad\r\nx-hub-signature-256")
    with connected(server) as peer:
        peer.sendall(twice + BODY)
        assert answer(peer).status == 401


def test_a_header_spelt_with_an_underscore_is_not_taken_for_the_real_one(server: Server) -> None:
    headers = {name.replace("x-hub-signature-256", "x_hub_signature_256"): text for name, text in signed(BODY).items()}
    assert ask(server, BODY, headers).status == 401


def test_twenty_copies_at_once_make_one_row_one_202_and_nineteen_200(server: Server, house: House) -> None:
    peers = [connected(server) for _ in range(20)]
    request = head({**signed(BODY), "content-length": str(len(BODY))}) + BODY
    start = threading.Barrier(len(peers))
    found: list[int] = []

    def one(peer: socket.socket) -> None:
        with peer:
            start.wait()
            peer.sendall(request)
            found.append(answer(peer).status)

    threads = [threading.Thread(target=one, args=(peer,)) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [200] * 19 + [202] == sorted(found)
    assert [entry.delivery for entry in house.inbox.listing()] == ["d-1"]


def test_a_server_that_is_told_to_stop_finishes_what_has_come_in_and_takes_no_more(house: House) -> None:
    headers = {**signed(BODY), "content-length": str(len(BODY))}
    with serving(house, grace=20) as server, connected(server) as peer, connected(server) as idle:
        peer.sendall(head(headers) + BODY[:-1])
        idle.sendall(head({"content-length": "0"}))
        assert answer(idle).status == 401  # so both are known to the server
        server.stop()
        assert idle.recv(1) == b""
        with pytest.raises(OSError, match=r"refused|reset"):
            connected(server)
        peer.sendall(BODY[-1:])
        assert answer(peer).status == 202
        assert peer.recv(1) == b""


def test_a_server_waits_no_longer_than_its_grace_for_a_client_that_never_ends(house: House) -> None:
    with serving(house, grace=0.3) as server, connected(server) as peer:
        peer.sendall(head({**signed(BODY), "content-length": "100"}) + b"{")
        with connected(server) as other:
            other.sendall(head({"content-length": "0"}))
            answer(other)
        server.stop()
        assert peer.recv(1) == b""


def test_a_port_of_any_kind_is_bound_and_told(house: House) -> None:
    with bound("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        bound("127.0.0.1", first.getsockname()[1])


def test_nothing_a_client_does_is_logged_as_an_error(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for garbage in (b"\r\n\r\n", b"\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", head({"": ""})):
        with connected(server) as peer:
            peer.sendall(garbage)
    forged = head({"content-length": str(SIZE * 4), "x-other": sign(BODY, SECRET)})
    for _ in range(50):
        with connected(server) as peer, contextlib.suppress(OSError):
            peer.sendall(forged + bytes(300_000))
    connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=60)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
    assert [record.getMessage() for record in caplog.records] == []
