"""``gateway keys``: make, list and revoke callers' keys.

A running gateway notices within a second.
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from gateway.cli.books import add_store, with_store
from gateway.cli.exits import CommandError, Exit
from gateway.cli.family import below
from gateway.cli.numbers import count
from gateway.cli.output import out, say, show
from gateway.cli.periods import future, shown
from gateway.settings.bounds import fit_name, fit_usd
from gateway.settings.money import dollars, nano

if TYPE_CHECKING:
    from gateway.settings.snapshot import KeySettings, Limits, Snapshot
    from gateway.store.base import KeyRow, Store

EXAMPLES = """\
examples:
  gateway keys create alice --models smart,fast --usd-per-day 5 --rpm 60
  gateway keys create ci --expires 30d
  KEY=$(gateway keys create bot)            only the key goes to standard output
  gateway keys list
  gateway keys revoke alice
"""
COLUMNS = ("name", "id", "state", "role", "project", "models", "limits", "created", "expires")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``keys create|list|revoke``."""
    family = commands.add_parser(
        "keys",
        help="make, list and revoke callers' keys",
        description="Make, list and revoke callers' keys. A running gateway notices in a second.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = below(family, "actions", "ACTION")
    _add_create(actions)
    listing = actions.add_parser("list", help="show all keys, never their text")
    listing.add_argument("--format", choices=("table", "json", "csv"), default="table")
    add_store(listing)
    listing.set_defaults(run=run_list)
    revoke = actions.add_parser("revoke", help="end a key at once")
    revoke.add_argument("key", metavar="NAME|ID", help="the key's name or id")
    add_store(revoke)
    revoke.set_defaults(run=run_revoke)


def _add_create(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    create = actions.add_parser("create", help="make a key, and show it once")
    create.add_argument("name", metavar="NAME", type=_name, help="a name that no other key has")
    create.add_argument("--role", choices=("caller", "admin"), default="caller", help="(caller)")
    create.add_argument(
        "--project", type=_name, default="default", help="the tenant it belongs to (default)"
    )
    create.add_argument("--models", metavar="A,B", type=_names, help="only these (all)")
    create.add_argument("--rpm", metavar="N", type=count, help="requests a minute")
    create.add_argument("--tpm", metavar="N", type=count, help="tokens a minute")
    create.add_argument("--concurrent", metavar="N", type=count, help="requests at once")
    create.add_argument("--usd-per-day", metavar="USD", type=_nano, help="spent a day (UTC)")
    create.add_argument("--usd-per-month", metavar="USD", type=_nano, help="spent a month (UTC)")
    create.add_argument("--usd-total", metavar="USD", type=_nano, help="spent in all")
    create.add_argument("--expires", metavar="WHEN", type=future, help="30d, or 2027-01-31")
    add_store(create)
    create.set_defaults(run=run_create)


def run_create(args: argparse.Namespace) -> int:
    """Make a key; its text is the only thing on standard output."""

    async def work(snapshot: Snapshot, store: Store) -> str:
        from adapters.canonical.clock import SystemClock
        from gateway.policy.auth import Keyring, new_key
        from gateway.store import pepper
        from gateway.store.base import KeyRow

        _check_new(args, snapshot, await store.keys())
        text = new_key()
        row = KeyRow(
            id=SystemClock().new_id("key_"),
            name=args.name,
            digest=Keyring(pepper(snapshot.store, snapshot.server.pepper)).digest(text),
            role=args.role,
            project=args.project,
            created_at=time.time(),
            models=args.models,
            limits=_limits(args),
            expires_at=args.expires,
        )
        if not await store.add_key(row):
            raise _taken(args.name)
        return text

    out(with_store(args, work))
    say("Keep this key: it is shown only now. A running gateway accepts it within a second.")
    return Exit.OK


def run_list(args: argparse.Namespace) -> int:
    """Show the file's keys and the store's."""

    async def work(snapshot: Snapshot, store: Store) -> list[dict[str, Any]]:
        return [_file_row(key) for key in snapshot.keys] + [
            _store_row(row, snapshot.default_limits) for row in await store.keys()
        ]

    show(with_store(args, work), COLUMNS, args.format)
    return Exit.OK


def run_revoke(args: argparse.Namespace) -> int:
    """End a key of the store by its id, or by a name that only one open key has."""

    async def work(snapshot: Snapshot, store: Store) -> str:
        found = [
            row
            for row in await store.keys()
            if row.revoked_at is None and args.key in (row.id, row.name)
        ]
        if not found:
            raise CommandError(_not_revocable(args.key, snapshot))
        if len(found) > 1:
            raise CommandError(f"Several keys are called {args.key}: name one by its id.")
        await store.revoke_key(found[0].id, time.time())
        return f"{found[0].name} ({found[0].id}) is revoked."

    say(with_store(args, work))
    return Exit.OK


def _not_revocable(name: str, snapshot: Snapshot) -> str:
    if any(key.name == name for key in snapshot.keys):
        return f"{name} stands in the configuration file: take it out there, then reload."
    return f"No open key has the name or id {name}. See: gateway keys list"


def _check_new(args: argparse.Namespace, snapshot: Snapshot, rows: list[KeyRow]) -> None:
    taken = {key.name for key in snapshot.keys}
    taken |= {row.name for row in rows if row.revoked_at is None}
    if args.name in taken:
        raise _taken(args.name)
    unknown = [name for name in args.models or () if name not in snapshot.aliases]
    if unknown:
        known = ", ".join(sorted(snapshot.aliases))
        raise CommandError(f"The configuration has no model {unknown[0]}; it has: {known}")


def _taken(name: str) -> CommandError:
    return CommandError(f"A key called {name} exists. Revoke it, or choose another name.")


def _limits(args: argparse.Namespace) -> Limits:
    from gateway.settings.snapshot import Limits

    return Limits(
        rpm=args.rpm,
        tpm=args.tpm,
        concurrent=args.concurrent,
        nano_per_day=args.usd_per_day,
        nano_per_month=args.usd_per_month,
        nano_total=args.usd_total,
    )


def _file_row(key: KeySettings) -> dict[str, Any]:
    return {
        "name": key.name,
        "id": None,
        "state": "in file" if key.expires is None or key.expires > time.time() else "expired",
        **_common(key.role, key.project, key.models, key.limits),
        "created": None,
        "expires": shown(key.expires),
    }


def _store_row(row: KeyRow, default: Limits) -> dict[str, Any]:
    state = "open"
    if row.revoked_at is not None:
        state = "revoked"
    elif row.expires_at is not None and row.expires_at <= time.time():
        state = "expired"
    return {
        "name": row.name,
        "id": row.id,
        "state": state,
        **_common(row.role, row.project, row.models, row.limits.over(default)),
        "created": shown(row.created_at),
        "expires": shown(row.expires_at),
    }


def _common(
    role: str, project: str, models: tuple[str, ...] | None, limits: Limits
) -> dict[str, Any]:
    return {
        "role": role,
        "project": project,
        "models": "all" if models is None else ",".join(models),
        "limits": _limits_text(limits),
    }


def _limits_text(limits: Limits) -> str:
    counts = (("rpm", limits.rpm), ("tpm", limits.tpm), ("concurrent", limits.concurrent))
    money = (
        ("$/day", limits.nano_per_day),
        ("$/month", limits.nano_per_month),
        ("$ in all", limits.nano_total),
    )
    words = [f"{value} {name}" for name, value in counts if value is not None]
    words += [f"{dollars(value)} {name}" for name, value in money if value is not None]
    return ", ".join(words) or "none"


def _name(text: str) -> str:
    try:
        return fit_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no name: it {error}") from None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("name at least one model, or leave it out for all")
    return names


def _nano(text: str) -> int:
    try:
        return nano(fit_usd(Decimal(text)))
    except InvalidOperation:  # no number, or not a number
        wrong = "must be a number"
    except ValueError as error:
        wrong = str(error)
    raise argparse.ArgumentTypeError(f"{text!r} is no amount: it {wrong}")
