"""``${VARIABLE}`` and ``file:PATH``: how a secret gets into a configuration without being in it.

A secret is the whole of one reference. Addresses and header values may have ``${VARIABLE}``
amid other text. Anywhere else a reference is refused, so that nothing is expanded by surprise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPEN = re.compile(r"\$\{[^}]*\}?")
_FILE = "file:"
_FILE_LIMIT = 64 * 1024


class Unresolved(Exception):
    """A reference that leads nowhere; the message says what to set or change."""


class References:
    """Resolves references against one environment and one folder."""

    __slots__ = ("_base", "_environment")

    def __init__(self, environment: Mapping[str, str], base: Path) -> None:
        self._environment = environment
        self._base = base

    def secret(self, text: str) -> str:
        """The secret that ``text`` refers to, as a whole.

        :raises Unresolved: unset or empty variable, unreadable file, or the secret itself.
        """
        variable = _VARIABLE.fullmatch(text)
        if variable is not None:
            return self._lookup(variable.group(1))
        if text.startswith(_FILE):
            return self._read(text.removeprefix(_FILE))
        raise Unresolved(
            "holds the secret itself. Keep secrets out of the file: write "
            '"${SOME_VARIABLE}" for an environment variable, or "file:/path/to/secret"'
        )

    def text(self, text: str) -> str:
        """``text`` with each ``${VARIABLE}`` replaced.

        :raises Unresolved: unset or empty variable, or a ``${`` that is no reference.
        """
        rest = _VARIABLE.sub("", text)
        if _OPEN.search(rest):
            raise Unresolved("has a ${ that is no reference; write ${NAME}, letters first")
        return _VARIABLE.sub(lambda match: self._lookup(match.group(1)), text)

    def _lookup(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise Unresolved(f"needs the environment variable {name}, which is not set")
        if not value:
            raise Unresolved(f"needs the environment variable {name}, which is empty")
        return value

    def _read(self, name: str) -> str:
        path = self._base / Path(name).expanduser()
        try:
            with path.open(encoding="utf-8-sig") as file:
                value = file.read(_FILE_LIMIT).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise Unresolved(f"needs the file {path}, which can't be read: {reason}") from error
        if not value:
            raise Unresolved(f"needs the file {path}, which is empty")
        return value


def has_reference(text: str) -> bool:
    """Whether ``text`` has something that looks like ``${…}``."""
    return _OPEN.search(text) is not None
