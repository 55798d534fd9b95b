"""Reads the configuration: file to shape to checks to snapshot, all faults at once.

Start at :func:`load`. A snapshot comes out whole or not at all; nothing in it is looked up
again. May read files and the environment that it is given, never the network.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from adapters.canonical.record import record
from gateway.settings.load.check import check_references, check_tables, check_vendors
from gateway.settings.load.digest import digest
from gateway.settings.load.facts import FactsBook, check_words
from gateway.settings.load.findings import Findings
from gateway.settings.load.positions import Path, positions
from gateway.settings.load.prices import PriceBook
from gateway.settings.load.references import References
from gateway.settings.load.resolve import Resolver, limits
from gateway.settings.load.shape import read_shape
from gateway.settings.model import Config, FactsFile, FactsRow, LimitsTable
from gateway.settings.problems import ConfigError, Problem
from gateway.settings.snapshot import Snapshot

FACTS_FILE = "models.toml"
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")

_TOML_ADVICE = {
    "Invalid value": ' Texts stand in quotes: key = "text".',
    "Expected newline": ' Texts stand in quotes: key = "text".',
    "Cannot overwrite": " The same key stands twice.",
    "Cannot declare": " The same table stands twice.",
}
"""By what the parser says: what the writer may not know."""


@record(frozen=True, slots=True)
class Overrides:
    """What a command line says over the file. ``simulator_url`` is where the in-process
    simulator listens, for providers with ``simulator = true``. ``store_dir`` is the folder from
    which a relative SQLite path counts (default: the file's own)."""

    host: str | None = None
    port: int | None = None
    simulator_url: str = "http://127.0.0.1:9"
    store_dir: str | None = None


NO_OVERRIDES = Overrides()


def load(
    path: str | os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    overrides: Overrides = NO_OVERRIDES,
) -> Snapshot:
    """The configuration at ``path``, resolved and frozen.

    :param environment: where ``${VARIABLE}`` is looked up; the process's own by default.
    :raises ConfigError: with every fault: file, line, key path, what to write instead.
    """
    file = FilePath(path)
    data, lines = read_toml(file)
    findings = Findings(str(file), lines)
    _override(data, overrides)
    config, faults = read_shape(data, Config)
    for place, message in faults.items():
        findings.add(place, message)
    if config is None:
        raise ConfigError(findings.problems())
    check_tables(config, data, findings)
    base = file.parent.absolute()
    references = References(os.environ if environment is None else environment, base)
    check_references(data, references, findings)
    store_dir = FilePath(overrides.store_dir or base).absolute()
    resolver = Resolver(config, references, findings, base, store_dir)
    rows, tables = _facts_rows(base / FACTS_FILE)
    prices = PriceBook()
    check_vendors(config, prices, findings)
    snapshot = _build(config, resolver, FactsBook(rows, prices), overrides)
    folders = _folders(config, base, findings)
    findings.raise_if_any()
    return replace(snapshot, hash=digest(data, tables, folders), base_dir=str(base))


def read_toml(file: FilePath) -> tuple[dict[str, Any], dict[Path, int]]:
    """A TOML file and the line of each of its keys. Floats are ``Decimal``.

    :raises ConfigError: no such file, no UTF-8, no TOML.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")  # some editors put a mark before it
        return tomllib.loads(text, parse_float=Decimal), positions(text)
    except OSError as error:
        reason = error.strerror or "it can't be read"
        raise ConfigError([Problem("", f"can't be read: {reason}", str(file))]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", "is no UTF-8 text", str(file))]) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_no_toml(str(error), text, file)]) from error


def _no_toml(told: str, text: str, file: FilePath) -> Problem:
    """The parser's complaint with its line, and with what is most often meant by it."""
    place = _PLACE.search(told)
    line = int(place[1]) if place and place[1] else len(text.splitlines()) or None
    advice = next((words for sign, words in _TOML_ADVICE.items() if sign in told), "")
    message = f"is no valid TOML: {_PLACE.sub('', told).strip()}.{advice}"
    return Problem("", message, str(file), line)


def shipped(name: str) -> FilePath:
    """The path of a file that comes with the package: ``demo.toml`` or ``models.toml``."""
    return FilePath(str(files("gateway.settings") / "shipped" / name))


def _override(data: dict[str, Any], overrides: Overrides) -> None:
    """Put the command line's words in place before anything is checked, since the checks
    depend on them: a key that will do on loopback won't elsewhere."""
    for key, value in (("host", overrides.host), ("port", overrides.port)):
        server = data.setdefault("server", {})
        if value is not None and isinstance(server, dict):
            server[key] = value


def _facts_rows(own: FilePath) -> tuple[list[FactsRow], list[bytes]]:
    """The shipped rows, then those of a ``models.toml`` beside the configuration, and the
    bytes of both for the digest."""
    rows: list[FactsRow] = []
    tables: list[bytes] = []
    for file in (shipped(FACTS_FILE), own):
        if not file.is_file() or (tables and file.samefile(shipped(FACTS_FILE))):
            continue
        data, lines = read_toml(file)
        findings = Findings(str(file), lines)
        shape, faults = read_shape(data, FactsFile)
        for place, message in faults.items():
            findings.add(place, message)
        for index, row in enumerate(shape.model if shape else ()):
            check_words(row, ("model", index), findings)
            rows.append(row)
        findings.raise_if_any()
        tables.append(file.read_bytes())
    return rows, tables


def _build(config: Config, resolver: Resolver, book: FactsBook, overrides: Overrides) -> Snapshot:
    providers = {
        name: resolver.provider(name, overrides.simulator_url) for name in config.providers
    }
    aliases = {name: resolver.alias(name, providers, book) for name in config.models}
    return Snapshot(
        hash="",
        server=resolver.server(),
        store=resolver.store(),
        observe=resolver.observe(),
        providers=providers,
        aliases=aliases,
        keys=tuple(resolver.key(index, key) for index, key in enumerate(config.keys)),
        default_limits=limits(config.limits.default, LimitsTable()),
        price_table=book.prices.table,
        extra=resolver.extra(),
    )


def _folders(config: Config, base: FilePath, findings: Findings) -> list[FilePath]:
    """The configured folders, which must exist."""
    folders = []
    for path, name in (
        (("prompts", "dir"), config.prompts.dir),
        (("runs", "agents_dir"), config.runs.agents_dir),
        (("runs", "workflows_dir"), config.runs.workflows_dir),
    ):
        if name is None:
            continue
        folder = base / name
        if not folder.is_dir():
            findings.add(path, f"names {folder}, which is no folder")
        folders.append(folder)
    return folders
