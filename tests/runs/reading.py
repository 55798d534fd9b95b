"""Many readers of one run, in a process of their own: ``HOST PORT RUN KEY BUSY LAZY``.

The busy ones check that no event is missing and none comes twice; the lazy ones ask, and then take
nothing until the busy ones are done. Prints as JSON how many events each busy one saw, and how many
of the lazy ones were let go before the end.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys

ID = re.compile(rb"^id: (\d+)\n", re.MULTILINE)
END = b"event: run.cancelled\n"


class Busy(asyncio.Protocol):
    def __init__(self, ask: bytes) -> None:
        self._ask = ask
        self._rest = b""
        self.seen = 0
        self.ended = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._ask)

    def data_received(self, data: bytes) -> None:
        whole, _, self._rest = (self._rest + data).rpartition(b"\n\n")
        for number in ID.findall(whole):
            self.seen += 1
            assert int(number) == self.seen, f"{int(number)} came where {self.seen} was due"
        self.ended = self.ended or END in whole

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set_result(None)


def lazy_one(address: tuple[str, int], ask: bytes) -> socket.socket:
    lazy = socket.create_connection(address)
    lazy.sendall(ask)
    return lazy


def rest(lazy: socket.socket) -> bytes:
    """What had been sent until the connection was closed, its last bytes."""
    found = b""
    lazy.settimeout(30)
    with lazy:
        try:
            while data := lazy.recv(1 << 20):
                found = found[-100:] + data
        except ConnectionError:
            pass
    return found


async def main(host: str, port: str, run_id: str, key: str, busy: str, lazy: str) -> None:
    head = f"GET /runs/{run_id}/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    ask = f"{head}connection: close\r\n\r\n".encode()
    idle = [lazy_one((host, int(port)), ask) for _ in range(int(lazy))]
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Busy(ask), host, int(port)) for _ in range(int(busy))
    ]
    print("reading", flush=True)
    await asyncio.gather(*(one.gone for _, one in made))
    let_go = sum(END not in rest(one) for one in idle)
    seen = [one.seen if one.ended else -one.seen for _, one in made]
    print(json.dumps({"seen": seen, "let_go": let_go}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
