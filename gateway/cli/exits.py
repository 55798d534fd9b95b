"""The exit codes of the ``gateway`` command, for scripts to branch on."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What an exit code means; :data:`MEANINGS` says it for ``--help``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.FAILED: "the command failed; the message says why",
    Exit.USAGE: "the command line is wrong",
    Exit.CONFIG: "the configuration does not pass; every fault is listed",
    Exit.UNAVAILABLE: "the port is taken, or the store can't be used",
    Exit.INTERRUPTED: "cut short by Ctrl-C; what serves until told to stop ends with 0",
}


class CommandError(Exception):
    """A command can't go on; ``message`` is for the person at the screen."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
