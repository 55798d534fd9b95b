"""The pepper: the server's secret in the HMAC of every key.

Without it the digests in the database are worth nothing, to a thief and to us: keep a copy of
it with the backups, but not in the same place.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gateway.settings.snapshot import Secret, StoreSettings
from gateway.store.base import StoreError
from gateway.store.sqlite import PREFIX, database_path


def pepper(settings: StoreSettings, server_pepper: Secret | None) -> bytes:
    """``[server] pepper`` if it is set; else the content of a file of mode 0600 beside the
    SQLite file, made at first use.

    :raises StoreError: no pepper with PostgreSQL, an empty one, a file that others can read.
    """
    if server_pepper is not None:
        if not server_pepper.reveal():
            raise StoreError("[server] pepper is empty. Set it to at least 32 random characters.")
        return server_pepper.reveal().encode()
    if not settings.url.startswith(PREFIX):
        raise StoreError(
            "[server] pepper must be set when the store is PostgreSQL, so that all gateways share "
            'it: pepper = "${GATEWAY_PEPPER}", with at least 32 random characters in it.'
        )
    database = database_path(settings.url)
    return _from_file(database.with_name(database.name + ".pepper"))


def _from_file(path: Path) -> bytes:
    try:
        if not path.exists():
            _make(path)
        mode = path.stat().st_mode
        value = path.read_bytes().strip()
    except OSError as error:
        raise StoreError(f"The pepper file {path.name} can't be read or made ({error}).") from error
    if mode & 0o077:
        raise StoreError(f"Others can read the pepper file {path}: run chmod 600 on it.")
    if len(value) < 32:
        raise StoreError(
            f"The pepper file {path} is damaged: it holds {len(value)} characters. Restore it "
            "from your backup; without it no key that was ever made is accepted."
        )
    return value


def _make(path: Path) -> None:
    """Make the file whole or not at all; of two processes that try, one wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_hex(32).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return  # the other one has won: its pepper is the pepper
    finally:
        draft.unlink()
