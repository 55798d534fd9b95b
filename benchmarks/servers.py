"""The processes under test, and what ``/proc`` says of them. Needs Linux."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STARTS_WITHIN = 20.0
"""Seconds until a server has to answer."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int) -> float:
    """Time that a process has run so far, all its living threads, to the microsecond: the clock
    ticks of ``/proc/PID/stat`` are too coarse for a short run."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def process(port: int, *command: str, **environment: str) -> Iterator[int]:
    """A server process that answers on ``port``; its pid. What it says goes to a file, which is
    shown where it does not start."""
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(
            [sys.executable, *command],
            # as installed: with its modules compiled
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
            stdout=said,
            stderr=said,
        )
        try:
            if not _answers(port, running):
                said.seek(0)
                raise SystemExit(f"{' '.join(command)} does not start:\n{said.read().decode()}")
            yield running.pid
        finally:
            running.terminate()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def _answers(port: int, running: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + STARTS_WITHIN
    while running.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def mock() -> Iterator[str]:
    """The upstream; its URL."""
    port = free_port()
    with process(port, "-m", "benchmarks.mock", str(port)):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def floor(upstream: str) -> Iterator[tuple[int, int]]:
    """The bare relay; its pid and port."""
    port = free_port()
    with process(port, "-m", "benchmarks.floor", str(port), upstream) as pid:
        yield pid, port


@contextlib.contextmanager
def gateway(config: str, folder: str) -> Iterator[tuple[int, int]]:
    """The gateway with ``config``, in which ``PORT`` and ``FOLDER`` stand for those; its pid and
    port."""
    port = free_port()
    path = Path(folder) / f"{port}.toml"
    path.write_text(config.replace("PORT", str(port)).replace("FOLDER", f"{folder}/{port}"))
    with process(
        port,
        *("-m", "gateway", "serve", "--config", str(path)),
        UPSTREAM_KEY="upstream",
        BENCH_KEY="bench-key",
    ) as pid:
        yield pid, port
