"""The judge's end of a worker's two sockets: frames in and out, and the captured output, against a clock.

Everything here must survive a worker that lies, stalls or floods: sizes are checked before memory is taken, a frame
that stops half-way runs into the deadline, output beyond the cap is read and dropped so that printing never blocks or
fails the submission.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from harness.worker.protocol import HEADER, MAX_FRAME, ProtocolError

TICK = 0.05  # seconds between two looks at the clock while a call runs
_CHUNK = 2**16
_MOST_AFTER_REPLY = 2**22  # bytes of output read at once when a call has ended: a flood must not hold the judge


class Closed(Exception):
    """The worker's end of the channel is closed: the process has ended, or is about to."""


class Output:
    """What a submission printed: the first `limit` bytes, and how many more there were."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        room = max(0, self.limit - len(self.data))
        self.data += chunk[:room]
        self.dropped += max(0, len(chunk) - room)

    def take(self) -> str:
        """The text since the last call, with a note of what was cut."""
        text = bytes(self.data).decode("utf-8", "replace")
        if self.dropped:
            text += f"\n[{self.dropped} more bytes were not kept]\n"
        self.data.clear()
        self.dropped = 0
        return text


class Channel:
    """One worker's sockets.

    Args:
        frames: requests and replies.
        output: its stdout and stderr, read only.
        limit: bytes of output kept between two calls of `Output.take`.
    """

    def __init__(self, frames: socket.socket, output: socket.socket, limit: int) -> None:
        self.frames, self.output_socket = frames, output
        self.output = Output(limit)
        self.selector = selectors.DefaultSelector()
        for end in (frames, output):
            end.setblocking(False)
            self.selector.register(end, selectors.EVENT_READ)

    def exchange(self, body: bytes, watch: Callable[[], None]) -> bytes:
        """Send one request and return the body of the one frame that comes back.

        Args:
            body: the encoded request.
            watch: called at least every `TICK` seconds; what it raises ends the exchange.

        Raises:
            Closed: the worker ended.
            ProtocolError: bytes came before they were asked for, a frame longer than `MAX_FRAME`, or more than one.
        """
        self._refuse_early_bytes()
        self._send_all(len(body).to_bytes(HEADER) + body, watch)
        incoming = bytearray()
        wanted = HEADER
        while len(incoming) < wanted:
            if self._wait(watch):
                incoming += self._receive()
                if wanted == HEADER and len(incoming) >= HEADER:
                    wanted += _length(incoming)
        if len(incoming) > wanted:
            raise ProtocolError("more than one answer to one request")
        self.drain()
        return bytes(incoming[HEADER:])

    def drain(self) -> None:
        """Read the output that is there already, without waiting."""
        for _ in range(_MOST_AFTER_REPLY // _CHUNK):
            if not self._read_output():
                return

    def close(self) -> None:
        self.selector.close()
        self.frames.close()
        self.output_socket.close()

    def _wait(self, watch: Callable[[], None]) -> bool:
        """Wait a tick at most; whether the frames' socket is ready. Output that comes meanwhile is read."""
        events = self.selector.select(TICK)
        watch()
        ready = False
        for key, _ in events:
            if key.fileobj is self.frames:
                ready = True
            elif self._read_output() == b"":
                self.selector.unregister(self.output_socket)
        return ready

    def _send_all(self, data: bytes, watch: Callable[[], None]) -> None:
        rest = memoryview(data)
        while True:
            try:
                rest = rest[self.frames.send(rest) :]
            except BlockingIOError:
                pass
            except OSError as error:
                raise Closed from error
            if not rest:
                return
            self.selector.modify(self.frames, selectors.EVENT_WRITE)  # a full buffer: wait until there is room
            try:
                self._wait(watch)
            finally:
                self.selector.modify(self.frames, selectors.EVENT_READ)

    def _refuse_early_bytes(self) -> None:
        try:
            early = self.frames.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError as error:
            raise Closed from error
        if not early:
            raise Closed
        raise ProtocolError("bytes on the channel that nobody asked for")

    def _receive(self) -> bytes:
        try:
            chunk = self.frames.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Closed from error
        if not chunk:
            raise Closed
        return chunk

    def _read_output(self) -> bytes | None:
        """What was there to read: b"" once the worker has closed its end, None when there is nothing now."""
        try:
            chunk = self.output_socket.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        self.output.add(chunk)
        return chunk


def _length(header: bytearray) -> int:
    length = int.from_bytes(header[:HEADER])
    if not 0 < length <= MAX_FRAME:
        raise ProtocolError(f"a frame of {length} bytes")
    return length
