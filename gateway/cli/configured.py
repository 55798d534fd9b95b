"""The ``--config`` argument, and the snapshot behind it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.exits import CommandError, Exit

if TYPE_CHECKING:
    from gateway.settings.load import Overrides
    from gateway.settings.snapshot import Snapshot

VARIABLE = "GATEWAY_CONFIG"
DEFAULT = "gateway.toml"


def add_config(parser: argparse.ArgumentParser) -> None:
    """``--config FILE``."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the configuration (default: ${VARIABLE}, else {DEFAULT} in this folder)",
    )


def config_path(args: argparse.Namespace) -> Path:
    """The file that was named, in whichever way.

    :raises CommandError: no such file.
    """
    path = Path(args.config or os.environ.get(VARIABLE) or DEFAULT)
    if not path.is_file():
        raise CommandError(
            f"There is no configuration at {path}. Name one with --config FILE, or try the "
            "gateway without any: gateway demo",
            Exit.CONFIG,
        )
    return path


def read(args: argparse.Namespace, overrides: Overrides | None = None) -> Snapshot:
    """The snapshot of the configuration that ``args`` names.

    :raises ConfigError: with every fault.
    """
    from gateway.settings.load import NO_OVERRIDES, load

    return load(config_path(args), overrides=overrides or NO_OVERRIDES)
