"""The faults that a provider may have, and for each the conduct that is right: the table.

One row a fault. ``docs/reliability.md`` explains the words; ``python -m pytest -s tests/faults``
(``make faults``) prints what becomes of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["stream", "whole"]


@dataclass(frozen=True)
class Fault:
    """A fault of the first target, and what has to follow.

    ``word`` is the simulator's (``docs/simulator.md``). ``kind`` is what the call fails with
    where nothing rescues it; empty for what is odd but sound, and read as such. ``tries`` is how
    often the target is asked before it is given up, with ``retries = 1``. ``passing``: it is
    gone at the second try, which rescues the call. ``mid``: in a stream it strikes after content
    has gone out, so that only ``commit = "complete"`` may rescue it. ``elsewhere``: another
    target may answer the call. ``again_after``: seconds that must lie between the first two
    tries. ``retry_after``: what the caller must read. ``form`` is where the fault exists, if
    not in both; ``dialects`` likewise. ``whole`` overrides fields where the answer is no stream,
    ``at`` where the provider speaks a dialect.
    """

    name: str
    word: str
    kind: str = ""
    tries: int = 1
    passing: bool = False
    mid: bool = False
    elsewhere: bool = True
    again_after: float = 0.0
    retry_after: int | None = None
    form: Form | None = None
    dialects: tuple[str, ...] = ("openai-chat", "openai-responses", "anthropic-messages")
    whole: Mapping[str, Any] = field(default_factory=dict)
    heavy: bool = False


SILENT_WHOLE = {"kind": "upstream_timeout", "tries": 1}
CUT_WHOLE = {"kind": "stream_truncated", "tries": 2}
BROKEN_WHOLE = {"kind": "protocol_error", "tries": 2}
CHAT = "openai-chat"
RESPONSES = "openai-responses"
MESSAGES = "anthropic-messages"

FAULTS: tuple[Fault, ...] = (
    # an error status
    Fault("429", "fault-status-429", "upstream_rate_limited", tries=2),
    Fault(
        "429, once, Retry-After in seconds",
        "fault-once-429-retry-after-0.4",
        passing=True,
        tries=2,
        again_after=0.4,
    ),
    Fault(
        "429, once, Retry-After as a date",
        "fault-once-429-retry-date-2",
        passing=True,
        tries=2,
        again_after=0.9,
    ),
    Fault(
        "429, Retry-After beyond the cap",
        "fault-status-429-retry-after-600",
        "upstream_rate_limited",
        retry_after=600,
    ),
    Fault(
        "429, Retry-After is nonsense",
        "fault-status-429-retry-hint--3",
        "upstream_rate_limited",
        tries=2,
    ),
    Fault("500, once", "fault-once-500", passing=True, tries=2),
    Fault("500", "fault-status-500", "upstream_server", tries=2),
    Fault("503", "fault-status-503", "upstream_overloaded", tries=2),
    Fault("529 (overloaded)", "fault-status-529", "upstream_overloaded", tries=2),
    Fault("408", "fault-status-408", "upstream_timeout"),
    Fault("400", "fault-status-400", "bad_request", elsewhere=False),
    Fault("422", "fault-status-422", "bad_request", elsewhere=False),
    Fault("413", "fault-status-413", "too_large", elsewhere=False),
    Fault("401", "fault-status-401", "upstream_auth"),
    Fault("401 that repeats the key", "fault-leaks-key", "upstream_auth"),
    Fault("403", "fault-status-403", "upstream_auth"),
    Fault("404", "fault-status-404", "upstream_rejected"),
    Fault("out of credit", "fault-out-of-credit", "upstream_billing"),
    Fault("context overflow", "fault-context-overflow", "context_overflow", elsewhere=False),
    Fault("content filter", "fault-content-filter", "content_filtered", elsewhere=False),
    Fault("error of 20 MB", "fault-huge-error-20", "upstream_server", tries=2),
    Fault("HTML with 502", "fault-html-502", "upstream_server", tries=2),
    Fault("redirect", "fault-redirect", "upstream_rejected"),
    # before the head is complete
    Fault("reset before headers", "fault-reset-before-headers", "connect_failed", tries=2),
    Fault("close before headers", "fault-close-before-headers", "connect_failed", tries=2),
    Fault("no response at all", "fault-no-response", "upstream_timeout"),
    Fault("slow-loris headers", "fault-loris", "upstream_timeout"),
    Fault("endless header", "fault-endless-header", "protocol_error", tries=2),
    Fault("slow headers", "fault-slow-headers-0.3"),
    # before the first content
    Fault("slow first event", "fault-slow-first-event-0.3"),
    Fault("slow first token", "fault-slow-first-token-0.3"),
    Fault("first token too slow", "fault-slow-first-token-9", "upstream_timeout"),
    Fault("heartbeat without content", "fault-heartbeat-only", "upstream_timeout"),
    Fault("error event first", "fault-error-first", "upstream_overloaded", tries=2),
    Fault("error under status 200", "fault-error-under-200", "upstream_overloaded", tries=2),
    Fault("HTML with 200", "fault-html-200", "protocol_error", tries=2),
    Fault("wrong content type", "fault-wrong-content-type", "protocol_error", tries=2),
    Fault("empty body", "fault-empty-body", "stream_truncated", tries=2, whole=BROKEN_WHOLE),
    Fault("gzip garbage", "fault-gzip-garbage", "protocol_error", tries=2),
    Fault(
        "oversized event (17 MB)",
        "fault-oversized-event",
        "protocol_error",
        tries=2,
        form="stream",
        heavy=True,
    ),
    Fault("invalid UTF-8", "fault-invalid-utf8", "protocol_error", tries=2),
    # in the middle
    Fault(
        "cut in mid-stream",
        "fault-cut-after-2",
        "stream_truncated",
        tries=2,
        mid=True,
        whole=CUT_WHOLE,
    ),
    Fault(
        "reset in mid-stream",
        "fault-reset-after-2",
        "stream_truncated",
        tries=2,
        mid=True,
        whole=CUT_WHOLE,
    ),
    Fault(
        "stall in mid-stream",
        "fault-stall-after-2",
        "upstream_timeout",
        mid=True,
        whole=SILENT_WHOLE,
    ),
    Fault(
        "heartbeat in mid-stream",
        "fault-heartbeat-after-2",
        "upstream_timeout",
        mid=True,
        whole=SILENT_WHOLE,
    ),
    Fault(
        "malformed chunk",
        "fault-malformed-after-2",
        "protocol_error",
        tries=2,
        mid=True,
        whole=BROKEN_WHOLE,
    ),
    Fault(
        "error event in mid-stream",
        "fault-error-midstream-2",
        "upstream_overloaded",
        tries=2,
        mid=True,
        form="stream",
    ),
    Fault(
        "missing terminal",
        "fault-no-terminal",
        "stream_truncated",
        tries=2,
        mid=True,
        form="stream",
    ),
    Fault(
        "truncated JSON body",
        "fault-truncated-body",
        "stream_truncated",
        tries=2,
        form="whole",
    ),
    Fault("half a JSON body", "fault-half-json", "protocol_error", tries=2, form="whole"),
    # odd, and sound
    Fault(
        "missing [DONE]",
        "fault-no-done",
        form="stream",
        dialects=(CHAT, RESPONSES),
    ),
    Fault(
        "missing message_stop",
        "fault-no-done",
        "stream_truncated",
        tries=2,
        mid=True,
        form="stream",
        dialects=(MESSAGES,),
    ),
    Fault("two terminals", "fault-two-terminals", form="stream"),
    Fault("content after the terminal", "fault-delta-after-terminal", form="stream"),
    Fault("ids that change", "fault-changing-ids"),
    Fault("unknown events", "fault-unknown-events", form="stream"),
    Fault("every byte in its own write", "fault-one-byte-writes", heavy=True),
    Fault("Retry-After on a success", "fault-retry-after-200"),
    Fault("usage missing", "fault-usage-missing"),
    Fault("usage below zero", "fault-usage-negative"),
    Fault("usage beyond 64 bits", "fault-usage-huge"),
    Fault("usage as text", "fault-usage-text"),
    Fault("connection closed while idle", "fault-close-idle"),
)
"""The scenes that need more than one target's fault (flapping, a full pool, a target that
rejects prefill, duplicate ids …) are in ``test_scenes.py``."""
