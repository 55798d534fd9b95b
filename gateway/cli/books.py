"""Commands on the store beside a running gateway: they take no lock and settle nobody's rows."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from gateway.cli.configured import add_config, read

if TYPE_CHECKING:
    from gateway.settings.snapshot import Snapshot
    from gateway.store.base import Store

T = TypeVar("T")


def add_store(parser: argparse.ArgumentParser) -> None:
    """``--config FILE`` or ``--demo``: whose books."""
    add_config(parser)
    parser.add_argument(
        "--demo", action="store_true", help="the demo's books: gateway-demo.db in this folder"
    )


def with_store(args: argparse.Namespace, work: Callable[[Snapshot, Store], Awaitable[T]]) -> T:
    """What ``work`` makes of the store that ``args`` names.

    :raises ConfigError: the configuration does not pass.
    :raises StoreError: the store can't be used.
    """
    import asyncio

    return asyncio.run(_worked(_snapshot(args), work))


async def _worked(snapshot: Snapshot, work: Callable[[Snapshot, Store], Awaitable[T]]) -> T:
    from gateway.store import connect

    store = connect(snapshot.store, serving=False)
    try:
        await store.open()
        return await work(snapshot, store)
    finally:
        await store.close()


def _snapshot(args: argparse.Namespace) -> Snapshot:
    from pathlib import Path

    from gateway.cli.serve import DEMO_FILE
    from gateway.settings.load import Overrides, load, shipped

    if args.demo:
        return load(shipped(DEMO_FILE), overrides=Overrides(store_dir=str(Path.cwd())))
    return read(args)
