"""What a database's own error becomes: one fault, one log line, no content.

A driver's message may quote values (``Key (id)=(...) already exists``), so only its class and
its code are kept.
"""

from __future__ import annotations

import logging

from adapters.canonical.faults import Fault

log = logging.getLogger("gateway.store")


def unavailable(error: BaseException | None, doing: str) -> Fault:
    """The ``store_unavailable`` fault for ``error``, which is logged.

    :param doing: what failed, for the log: ``"commit"``, ``"connect"``.
    """
    name = "closed" if error is None else type(error).__name__
    code = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None)
    detail = f"store: {doing} failed: {name}" + (f" ({code})" if code else "")
    log.error(detail)
    return Fault(
        "store_unavailable",
        "The gateway's ledger can't be written or read now, so no call is made. Try again shortly.",
        detail=detail,
        retry_after=1.0,
    )
