"""The judge's end of a worker's sockets, against peers that stall, chatter, lie, flood or leave."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from harness.worker.channel import Channel, Closed, Output
from harness.worker.protocol import HEADER, MAX_FRAME, ProtocolError

LIMIT = 1000  # bytes of output kept


class Peer(NamedTuple):
    """The worker's ends of the two sockets."""

    frames: socket.socket
    output: socket.socket


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(HEADER) + body


def request(peer: Peer) -> bytes:
    """Read one request, as an honest worker does."""
    size = int.from_bytes(peer.frames.recv(HEADER, socket.MSG_WAITALL))
    return peer.frames.recv(size, socket.MSG_WAITALL)


@contextmanager
def connected(*plays: Callable[[Peer], object]) -> Iterator[tuple[Channel, Peer]]:
    """A channel whose peer runs each of `plays` in a thread of its own; all have ended on leaving."""
    ours, theirs = socket.socketpair()
    output, their_output = socket.socketpair()
    channel, peer = Channel(ours, output, LIMIT), Peer(theirs, their_output)

    def run(play: Callable[[Peer], object]) -> None:
        try:
            play(peer)
        except OSError:
            assert ended.is_set()  # the judge has closed its ends: what it had to show was seen

    ended = threading.Event()
    threads = [threading.Thread(target=run, args=(play,)) for play in plays]
    for thread in threads:
        thread.start()
    try:
        yield channel, peer
    finally:
        ended.set()
        channel.close()
        for thread in threads:
            thread.join()
        peer.frames.close()
        peer.output.close()


def patience(seconds: float) -> Callable[[], None]:
    """A watch that gives up after so long."""
    deadline = time.monotonic() + seconds

    def watch() -> None:
        if time.monotonic() > deadline:
            raise TimeoutError

    return watch


LONG, SHORT = 60.0, 0.3


def test_a_request_and_its_reply() -> None:
    with connected(lambda peer: peer.frames.sendall(frame(request(peer)[::-1]))) as (channel, _):
        assert channel.exchange(b"abc", patience(LONG)) == b"cba"


def test_a_request_and_a_reply_of_the_largest_size_pass_in_pieces() -> None:
    body = bytes(range(256)) * (MAX_FRAME // 256)
    with connected(lambda peer: peer.frames.sendall(frame(request(peer)))) as (channel, _):
        assert channel.exchange(body, patience(LONG)) == body


def test_a_reply_byte_by_byte() -> None:
    def drip(peer: Peer) -> None:
        request(peer)
        for byte in frame(b"slow"):
            peer.frames.sendall(bytes([byte]))
            time.sleep(0.01)

    with connected(drip) as (channel, _):
        assert channel.exchange(b"?", patience(LONG)) == b"slow"


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", frame(b"12345")[:-1]], ids=["silent", "in header", "in body"])
def test_a_peer_that_stalls_runs_into_the_deadline(sent: bytes) -> None:
    with (
        connected(lambda peer: (request(peer), peer.frames.sendall(sent))) as (channel, _),
        pytest.raises(TimeoutError),
    ):
        channel.exchange(b"?", patience(SHORT))


def test_a_peer_that_does_not_read_runs_into_the_deadline() -> None:
    with connected() as (channel, _), pytest.raises(TimeoutError):
        channel.exchange(bytes(MAX_FRAME), patience(SHORT))


@pytest.mark.parametrize("length", [0, MAX_FRAME + 1, 2**32 - 1])
def test_a_length_that_cannot_be_is_refused(length: int) -> None:
    def lie(peer: Peer) -> None:
        request(peer)
        peer.frames.sendall(length.to_bytes(HEADER))

    with connected(lie) as (channel, _), pytest.raises(ProtocolError, match=str(length)):
        channel.exchange(b"?", patience(LONG))


def test_bytes_before_the_request_are_refused() -> None:
    with connected() as (channel, peer):
        peer.frames.sendall(frame(b"an answer in advance"))
        with pytest.raises(ProtocolError, match="nobody asked"):
            channel.exchange(b"?", patience(LONG))


def test_bytes_after_a_reply_are_refused() -> None:
    """At once, or at the next request if they come later."""

    def chatter(peer: Peer) -> None:
        request(peer)
        peer.frames.sendall(frame(b"right") + frame(b"and one more"))

    with connected(chatter) as (channel, _), pytest.raises(ProtocolError, match=r"more than one|nobody asked"):
        channel.exchange(b"?", patience(LONG))
        channel.exchange(b"?", patience(LONG))


@pytest.mark.parametrize("sent", [b"", b"\x00", frame(b"12345")[:-1]], ids=["at once", "in header", "in body"])
def test_a_peer_that_leaves_is_noticed(sent: bytes) -> None:
    def leave(peer: Peer) -> None:
        request(peer)
        peer.frames.sendall(sent)
        peer.frames.close()

    with connected(leave) as (channel, _), pytest.raises(Closed):
        channel.exchange(b"?", patience(LONG))


def test_a_peer_that_has_left_before_is_noticed() -> None:
    with connected() as (channel, peer):
        peer.frames.close()
        with pytest.raises(Closed):
            channel.exchange(b"?", patience(LONG))


def test_output_that_was_written_before_the_reply_is_kept_and_cut() -> None:
    def flood(peer: Peer) -> None:
        request(peer)
        peer.output.sendall(b"x" * 10_000_000)  # far more than a socket holds: it must be read away meanwhile
        peer.frames.sendall(frame(b"done"))

    with connected(flood) as (channel, _):
        assert channel.exchange(b"?", patience(LONG)) == b"done"
        channel.drain()
        assert channel.output.take() == "x" * LIMIT + f"\n[{10_000_000 - LIMIT} more bytes were not kept]\n"
        assert channel.output.take() == ""


def test_a_flood_that_never_ends_holds_up_neither_reply_nor_deadline() -> None:
    stop = threading.Event()

    def flood(peer: Peer) -> None:
        while not stop.is_set():
            peer.output.sendall(b"y" * 65536)

    def answer_once(peer: Peer) -> None:
        request(peer)
        peer.frames.sendall(frame(b"done"))

    with connected(flood, answer_once) as (channel, _):
        try:
            assert channel.exchange(b"?", patience(LONG)) == b"done"
            channel.drain()  # comes to an end, though the flood does not
            with pytest.raises(TimeoutError):
                channel.exchange(b"?", patience(SHORT))
            assert len(channel.output.data) == LIMIT
        finally:
            stop.set()


def test_closed_output_does_not_end_the_exchange() -> None:
    def close(peer: Peer) -> None:
        request(peer)
        peer.output.sendall(b"last words")
        peer.output.close()
        time.sleep(0.1)
        peer.frames.sendall(frame(b"done"))

    with connected(close) as (channel, _):
        assert channel.exchange(b"?", patience(LONG)) == b"done"
        assert channel.output.take() == "last words"


def test_what_the_watch_raises_ends_the_exchange() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with connected() as (channel, _), pytest.raises(KeyboardInterrupt):
        channel.exchange(b"?", interrupt)


def test_output_that_is_cut_within_a_character_is_valid_text() -> None:
    output = Output(4)
    output.add("日本".encode())
    assert output.take() == "日\ufffd\n[2 more bytes were not kept]\n"
