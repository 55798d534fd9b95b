"""The hash that stands for a configuration on every ledger row.

It covers the file as parsed, the facts tables and every file of the configured folders.
Secrets are in it only as the references by which the file names them, never by value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MAX_FILE = 4 * 1024 * 1024
"""Bytes of one file in a configured folder; more is no prompt, agent or workflow."""


def digest(raw: Mapping[str, Any], tables: Iterable[bytes], folders: Iterable[Path]) -> str:
    """SHA-256, in hexadecimal. The order of keys and the comments of the file don't matter.

    :raises OSError: a file of ``folders`` can't be read.
    """
    total = hashlib.sha256()
    _add(total, json.dumps(raw, sort_keys=True, default=str, ensure_ascii=False).encode())
    for table in tables:
        _add(total, table)
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            _add(total, path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                _add(total, file.read(MAX_FILE))
    return total.hexdigest()


def _add(total: hashlib._Hash, piece: bytes) -> None:
    """Length first, so that no two lists of pieces look the same."""
    total.update(len(piece).to_bytes(8, "big"))
    total.update(piece)
