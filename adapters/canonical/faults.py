"""The one fault class, and the table that says what each kind means.

Retry, failover, the breaker and the error bodies read :data:`KINDS` and nothing else: to
change how a kind is treated, change its row (fault kinds K10 and K11).
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

from adapters.canonical.record import record

Blame = Literal["caller", "provider", "operator", "model", "us"]
Again = Literal["no", "yes", "after", "reask"]
Next = Literal["no", "yes", "wider", "alias"]
Trips = Literal["no", "yes", "soft"]


@record(frozen=True, slots=True)
class Kind:
    """One row: whose fault, may the same target be tried again, may the next, does it count
    against the deployment's health, and the HTTP status that a caller sees.

    ``again``: ``after`` waits for ``Retry-After``; ``reask`` is a repair. ``next``: ``wider``
    is a target with a wider context window, ``alias`` is the alias's choice. ``trips``:
    ``soft`` counts for the rate, not for the streak.
    """

    blame: Blame
    again: Again
    next: Next
    trips: Trips
    status: int


KINDS: dict[str, Kind] = {
    "bad_request": Kind("caller", "no", "no", "no", 400),
    "unsupported": Kind("caller", "no", "no", "no", 400),
    "too_large": Kind("caller", "no", "no", "no", 413),
    "unauthenticated": Kind("caller", "no", "no", "no", 401),
    "forbidden": Kind("caller", "no", "no", "no", 403),
    "unknown_model": Kind("caller", "no", "no", "no", 404),
    "rate_limited": Kind("caller", "no", "no", "no", 429),
    "budget_exceeded": Kind("caller", "no", "no", "no", 402),
    "context_overflow": Kind("caller", "no", "wider", "no", 400),
    "content_filtered": Kind("caller", "no", "alias", "no", 400),
    "upstream_rate_limited": Kind("provider", "after", "yes", "soft", 429),
    "upstream_overloaded": Kind("provider", "after", "yes", "soft", 503),
    "upstream_auth": Kind("operator", "no", "yes", "yes", 502),
    "upstream_billing": Kind("operator", "no", "yes", "yes", 502),
    "upstream_rejected": Kind("operator", "no", "yes", "no", 502),
    "upstream_server": Kind("provider", "yes", "yes", "yes", 502),
    "connect_failed": Kind("provider", "yes", "yes", "yes", 502),
    "upstream_timeout": Kind("provider", "no", "yes", "yes", 504),
    "protocol_error": Kind("provider", "yes", "yes", "yes", 502),
    "stream_truncated": Kind("provider", "yes", "yes", "yes", 502),
    "output_unparsable": Kind("model", "reask", "alias", "no", 422),
    "output_invalid": Kind("model", "reask", "alias", "no", 422),
    "output_truncated": Kind("model", "reask", "alias", "no", 422),
    "max_turns": Kind("caller", "no", "no", "no", 504),
    "budget_exhausted": Kind("caller", "no", "no", "no", 402),
    "deadline": Kind("caller", "no", "no", "no", 504),
    "no_deployment": Kind("operator", "no", "no", "no", 503),
    "cancelled": Kind("caller", "no", "no", "no", 499),
    "not_found": Kind("caller", "no", "no", "no", 404),
    "method": Kind("caller", "no", "no", "no", 405),
    "conflict": Kind("caller", "no", "no", "no", 409),
    "gone": Kind("caller", "no", "no", "no", 410),
    "idempotency_mismatch": Kind("caller", "no", "no", "no", 422),
    "store_unavailable": Kind("us", "no", "no", "no", 503),
    "internal": Kind("us", "no", "no", "no", 500),
}
"""Every kind there is. The set is closed: an unknown kind is a programming error."""

OURS = frozenset({"connection_pool_full"})
"""Codes of faults that arise before the provider is asked: they say nothing of its health."""


class About(TypedDict, total=False):
    """What else may be known of a fault; everything is optional.

    ``code``: the machine-readable code in the error body (default: the kind). ``detail``: for
    the logs only. ``param``: the path of the offending field as the caller wrote it
    (``messages[0].role``). ``deployment``: ``provider/model`` of the target that failed.
    ``upstream_status``, ``upstream_code``, ``upstream_request_id``: what the provider said,
    bounded. ``retry_after``: seconds until another try makes sense. ``phase``: for
    ``upstream_timeout``, one of ``connect first_event between_events total``. ``billed``:
    ``False`` when the provider is known not to have worked on the call. ``data``: extra fields
    of the error body (``output_*``: raw text and errors).
    """

    code: str | None
    detail: str | None
    param: str | None
    deployment: str | None
    upstream_status: int | None
    upstream_code: str | None
    upstream_request_id: str | None
    retry_after: float | None
    phase: str | None
    billed: bool | None
    data: dict[str, Any] | None


class Fault(Exception):
    """Anything that can go wrong with a call, as data.

    :param kind: a key of :data:`KINDS`.
    :param message: one sentence that is safe to show to any caller: no prompt, key or URL.

    ``attempts`` is the chain of failed tries, the first cause first; :class:`About` describes
    the rest.
    """

    __slots__ = (
        "attempts",
        "billed",
        "code",
        "data",
        "deployment",
        "detail",
        "kind",
        "message",
        "param",
        "phase",
        "retry_after",
        "upstream_code",
        "upstream_request_id",
        "upstream_status",
    )

    def __init__(self, kind: str, message: str, **about: Unpack[About]) -> None:
        if kind not in KINDS:
            raise ValueError(f"unknown fault kind {kind!r}")
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.code = about.get("code") or kind
        self.detail = about.get("detail")
        self.param = about.get("param")
        self.deployment = about.get("deployment")
        self.upstream_status = about.get("upstream_status")
        self.upstream_code = about.get("upstream_code")
        self.upstream_request_id = about.get("upstream_request_id")
        self.retry_after = about.get("retry_after")
        self.phase = about.get("phase")
        self.billed = about.get("billed")
        self.data = about.get("data")
        self.attempts: tuple[Fault, ...] = ()

    @property
    def row(self) -> Kind:
        """This kind's row of the table."""
        return KINDS[self.kind]

    @property
    def trips(self) -> Trips:
        """Whether it counts against the deployment's health."""
        return "no" if self.code in OURS else self.row.trips

    @property
    def status(self) -> int:
        """The HTTP status that the caller sees."""
        return self.row.status

    def __repr__(self) -> str:
        return f"Fault({self.kind}: {self.message})"
