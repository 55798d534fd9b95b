"""The processes under test, and what ``/proc`` says of them. Needs Linux."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

STARTS_WITHIN = 20.0
"""Seconds until a server has to answer."""
STOPS_WITHIN = 10.0
"""Seconds for what a server has to finish after it was told to stop."""


class Unfit(Exception):
    """A server does not start, or does not answer as it has to. It ends a bench, unless the bench
    can go on without that server."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int) -> float:
    """Time that a process has run so far, all its living threads."""
    return sum(thread_seconds(pid).values())


def thread_seconds(pid: int) -> dict[int, float]:
    """The same of each thread, by its id (the main thread's is ``pid``), to the microsecond: the
    clock ticks of ``/proc/PID/stat`` are too coarse for a short run."""
    return {
        int(task.parent.name): int(task.read_text().split()[0]) / 1e9
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat")
    }


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            parent = entry.read_text().rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


@contextlib.contextmanager
def running(
    port: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path | None = None,
    within: float = STARTS_WITHIN,
) -> Iterator[int]:
    """A server process, started in ``folder``, that answers on ``port`` ``within`` seconds; its
    pid. What it says goes to a file, which is shown where it does not start. At the end its whole
    process group is stopped."""
    with tempfile.TemporaryFile() as said:
        started = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=said, stderr=said, process_group=0
        )
        try:
            if not _answers(port, started, within):
                said.seek(0)
                words = said.read().decode(errors="replace")
                raise Unfit(f"{' '.join(command)} does not start:\n{words}")
            yield started.pid
        finally:
            _stop(started)


@contextlib.contextmanager
def process(port: int, *command: str, **environment: str) -> Iterator[int]:
    """One of our own server processes, as :func:`running`."""
    # as installed: with its modules compiled
    settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    with running(port, [sys.executable, *command], settings) as pid:
        yield pid


def _answers(port: int, started: subprocess.Popen[bytes], within: float) -> bool:
    end = time.monotonic() + within
    while started.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        time.sleep(0.02)
    return False


def _stop(started: subprocess.Popen[bytes]) -> None:
    """End a process and what is left of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(STOPS_WITHIN)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


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
