"""Gateways that start in a fifth of the time: forked from a process that has imported everything.

``python -m tests.runs.nursery`` reads the arguments of :func:`tests.runs.crashing.serve` from each
line of its input, as JSON, begins a process with them, and prints its id.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.runs import crashing

ROOT = Path(__file__).parents[2]
LATE = ("gateway.store.postgres.database", "gateway.store.sqlite.database")
"""What a gateway imports only when it starts."""


class Nursery:
    """The other end. Whatever still runs when it is stopped is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runs.nursery"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def begin(self, config: Path, port: int, effects: Path, seq: int) -> int:
        """Begin a gateway; the id of its process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(config), port, str(effects), seq]), file=self._process.stdin)
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def alive(pid: int) -> bool:
    """Whether a process of the nursery lives; the dead are gone at once."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def main() -> None:
    for name in LATE:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDWR)
            for one in (0, 1, 2):
                os.dup2(nothing, one)
            random.seed()
            config, port, effects, seq = json.loads(line)
            asyncio.run(crashing.serve(config, port, Path(effects), seq))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
