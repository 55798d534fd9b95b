"""Every word that a model's name may have, and what it does: the table to read.

A name is one word or several joined by ``+``: ``reasoning+fault-cut-after-3``. Capitals are
parameters, brackets are optional. A word that is not in the table is taken for a real model's
name and means nothing; only a word that begins with ``fault-`` must be known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from adapters.canonical.record import record
from adapters.simulator import answers, changes, gates, troubles
from adapters.simulator import wirefaults as wire
from adapters.simulator import wireforms as forms

Kind = Literal["answer", "change", "error", "spoil", "gate", "flag"]
"""``answer`` makes the answer, ``change`` alters it, ``error`` replaces it, ``spoil`` alters
what goes onto the wire, ``gate`` decides when another fault applies, ``flag`` is a switch."""


@record(frozen=True, slots=True)
class Entry:
    """One word: its grammar, its kind, one line of meaning, and what it does."""

    name: str
    kind: Kind
    meaning: str
    act: Callable[..., Any]


def _flag(*_: object) -> None:
    """A switch does nothing by itself: the provider looks for it."""


ANSWERS = (
    Entry("echo", "answer", "repeats the last user text; no tools, no JSON", answers.echo),
    Entry("say-TEXT", "answer", "says TEXT, its dashes as blanks", answers.say),
    Entry("recite", "answer", "repeats the conversation as the provider saw it", answers.recite),
    Entry("sim-tool", "answer", "calls a tool whenever there are some", answers.sim_tool),
    Entry("parallel-N", "answer", "calls N tools in one turn, round the list", answers.parallel),
    Entry("talk-and-call", "answer", "says a sentence, then calls tools", answers.talk_and_call),
    Entry("bad-arguments", "answer", "calls a tool with cut JSON", answers.bad_arguments),
    Entry("unknown-tool", "answer", "calls a tool that nobody offered", answers.unknown_tool),
    Entry("silent", "answer", "ends properly without any content", answers.silent),
    Entry("refusal", "answer", "refuses in the vendor's own form", answers.refusal),
    Entry("paced-N-MS", "answer", "N chunks, one every MS milliseconds", answers.paced),
    Entry("burst-N", "answer", "N chunks as fast as they go", answers.burst),
    Entry("weigh-KB", "answer", "a text of KB kilobytes", answers.weigh),
    Entry("dirty-DIRT", "answer", "asked for JSON, spoils it in the way DIRT", answers.dirty),
    Entry("once-dirty-DIRT", "answer", "the same in the first answer only", answers.once_dirty),
    Entry(
        "invalid-then-valid-N",
        "answer",
        "JSON that breaks the schema N times, valid when asked again",
        answers.invalid_then_valid,
    ),
    Entry("always-invalid", "answer", "JSON that never fits the schema", answers.always_invalid),
)

CHANGES = (
    Entry("reasoning", "change", "thinks before the answer, asked or not", changes.reasoning),
    Entry(
        "sealed-reasoning",
        "change",
        "thinks, but shows only the seal (redacted, encrypted)",
        changes.sealed_reasoning,
    ),
    Entry("slow-MS", "change", "MS milliseconds before each delta", changes.slow),
)

ENDINGS = (
    Entry("fault-length-cut", "change", "half an answer, ended by the limit", changes.length_cut),
    Entry(
        "fault-only-reasoning",
        "change",
        "the limit is met before any text",
        changes.only_reasoning,
    ),
    Entry("fault-pause-turn", "change", "ends with pause_turn", changes.pause_turn),
    Entry("fault-window-full", "change", "ends at the context window", changes.window_full),
    Entry("fault-filtered", "change", "ended by the content filter", changes.filtered),
    Entry("fault-unknown-reason", "change", "ends for a new reason", changes.unknown_reason),
    Entry("fault-usage-missing", "change", "reports no usage", changes.usage_missing),
    Entry("fault-duplicate-ids", "change", "all tool calls under one id", changes.duplicate_ids),
    Entry("fault-strange-ids", "change", "call ids that others refuse", changes.strange_ids),
)

ERRORS = (
    Entry(
        "fault-status-STATUS[-retry-after-SECONDS]",
        "error",
        "an error with this status, and a hint when to come back",
        troubles.status,
    ),
    Entry(
        "fault-status-STATUS-retry-date-SECONDS",
        "error",
        "the same, the hint as a date",
        troubles.status_until,
    ),
    Entry(
        "fault-status-STATUS-retry-hint-TEXT",
        "error",
        "the same, the hint as it stands in the name",
        troubles.status_hint,
    ),
    Entry(
        "fault-context-overflow", "error", "400: the prompt is too long", troubles.context_overflow
    ),
    Entry("fault-content-filter", "error", "400: refused by a filter", troubles.content_filter),
    Entry("fault-out-of-credit", "error", "no money left, 400 or 429", troubles.out_of_credit),
    Entry("fault-no-prefill", "error", "400 if an assistant message is last", troubles.no_prefill),
    Entry("fault-unsupported-TEXT", "error", "400 if the field is there", troubles.unsupported),
    Entry("fault-leaks-key", "error", "401 with the caller's key in it", troubles.leaks_key),
)

WIRE = (
    Entry("fault-slow-headers[-SECONDS]", "spoil", "the head is 10 s late", wire.slow_headers),
    Entry("fault-slow-first-event-SECONDS", "spoil", "the body starts late", wire.slow_first_event),
    Entry(
        "fault-slow-first-token-SECONDS",
        "spoil",
        "the opening events come, the first delta late",
        wire.slow_first_token,
    ),
    Entry("fault-cut-after-N", "spoil", "closes the connection after N deltas", wire.cut),
    Entry("fault-reset-after-N", "spoil", "resets the connection after N deltas", wire.reset),
    Entry("fault-stall-after-N", "spoil", "falls silent after N deltas", wire.stall),
    Entry("fault-heartbeat-only", "spoil", "only pings, for ten minutes", wire.heartbeats),
    Entry("fault-heartbeat-after-N", "spoil", "only pings after N deltas", wire.heartbeats),
    Entry("fault-malformed-after-N", "spoil", "one event is no JSON", wire.malformed),
    Entry("fault-invalid-utf8", "spoil", "bytes that are no UTF-8 in a text", wire.invalid_utf8),
    Entry("fault-no-done", "spoil", "no [DONE], no message_stop", wire.no_done),
    Entry("fault-no-terminal", "spoil", "the stream ends without a reason", wire.no_terminal),
    Entry("fault-two-terminals", "spoil", "the ending comes twice", wire.two_terminals),
    Entry(
        "fault-delta-after-terminal",
        "spoil",
        "content comes after the ending",
        wire.delta_after_terminal,
    ),
    Entry(
        "fault-error-midstream-N", "spoil", "an error event after N deltas", wire.error_midstream
    ),
    Entry("fault-error-first", "spoil", "an error event is all that comes", wire.error_first),
    Entry("fault-error-under-200", "spoil", "an error body with status 200", wire.error_under_200),
    Entry("fault-html-200", "spoil", "an HTML page with status 200", wire.html_200),
    Entry("fault-html-502", "spoil", "an HTML page with status 502", wire.html_502),
    Entry("fault-redirect", "spoil", "302 to a forbidden address", wire.redirect),
    Entry(
        "fault-wrong-content-type", "spoil", "the right body as text/plain", wire.wrong_content_type
    ),
    Entry("fault-empty-body", "spoil", "status 200 and nothing", wire.empty_body),
    Entry("fault-half-json", "spoil", "half of the body, in proper HTTP", wire.half_json),
    Entry("fault-truncated-body", "spoil", "less than the head promised", wire.truncated_body),
    Entry("fault-gzip-garbage", "spoil", "said to be gzip, and is not", wire.gzip_garbage),
    Entry("fault-oversized-event[-MB]", "spoil", "an event of 17 (MB) MB", wire.oversized_event),
    Entry("fault-huge-error-MB", "spoil", "500 with a body of MB megabytes", wire.huge_error),
    Entry("fault-loris", "spoil", "the head, a byte every half second", wire.loris),
    Entry("fault-endless-header", "spoil", "a head that does not end", wire.endless_header),
    Entry(
        "fault-reset-before-headers",
        "spoil",
        "resets before any byte",
        wire.reset_before_headers,
    ),
    Entry(
        "fault-close-before-headers", "spoil", "closes before any byte", wire.close_before_headers
    ),
    Entry("fault-no-response", "spoil", "an open connection, no byte", wire.no_response),
    Entry("fault-close-idle", "spoil", "closes the kept connection unannounced", wire.close_idle),
    Entry("fault-one-byte-writes", "spoil", "every byte in its own write", wire.one_byte_writes),
    Entry(
        "fault-late-arguments",
        "spoil",
        "Responses: a call's arguments only in its done event",
        wire.late_arguments,
    ),
    Entry("fault-changing-ids", "spoil", "other ids in every event", wire.changing_ids),
    Entry("fault-retry-after-200", "spoil", "sound, with retry-after", wire.retry_after_200),
    Entry("fault-unknown-events", "spoil", "undocumented events in between", wire.unknown_events),
    Entry("fault-usage-negative", "spoil", "token counts below zero", forms.usage_negative),
    Entry("fault-usage-huge", "spoil", "token counts beyond 64 bits", forms.usage_huge),
    Entry("fault-usage-text", "spoil", "token counts as strings", forms.usage_text),
    Entry("fault-usage-fraction", "spoil", "token counts with a fraction", forms.usage_fraction),
    Entry("fault-reversed-data", "spoil", "embeddings in reverse order", forms.reversed_data),
)

FRAMING = (
    Entry("usage-late", "spoil", "Messages: input tokens only at the end", forms.usage_late),
    Entry("usage-short", "spoil", "Messages: output tokens alone at the end", forms.usage_short),
    Entry("azure-chunk", "spoil", "Chat: a first chunk without choices", forms.azure_chunk),
    Entry("sse-crlf", "spoil", "lines end with CR LF", forms.sse_crlf),
    Entry("sse-cr", "spoil", "lines end with CR", forms.sse_cr),
    Entry("sse-no-space", "spoil", "no blank after the colon", forms.sse_no_space),
    Entry("sse-comments", "spoil", "comments and retry lines between", forms.sse_comments),
    Entry("sse-bom", "spoil", "a byte order mark in front", forms.sse_bom),
    Entry("sse-no-last-blank", "spoil", "the last blank line is missing", forms.sse_no_last_blank),
    Entry("sse-split", "spoil", "writes end inside events and characters", forms.sse_split),
)

GATES = (
    Entry("fault-once-FAULT", "gate", "FAULT at the first call only", gates.once),
    Entry("fault-n-N-FAULT", "gate", "FAULT at the first N calls", gates.first_n),
    Entry("fault-flap-N", "gate", "N calls 503, N work, and so on", gates.flap),
    Entry("fault-flap-N-M[-FAULT]", "gate", "N calls FAULT, M work, and so on", gates.flap),
    Entry("fault-every-N-FAULT", "gate", "FAULT at each N-th call", gates.every),
    Entry("fault-chance-N-FAULT", "gate", "FAULT at N calls in a hundred", gates.chance),
    Entry("fault-for-SECONDS-FAULT", "gate", "FAULT for SECONDS from now", gates.for_a_while),
)

FLAGS = (
    Entry("lenient", "flag", "takes requests that a strict provider refuses", _flag),
    Entry("sim", "flag", "a plain model with a short name", _flag),
)

CATALOGUE: tuple[Entry, ...] = (
    *ANSWERS,
    *CHANGES,
    *FLAGS,
    *GATES,
    *ERRORS,
    *WIRE,
    *ENDINGS,
    *FRAMING,
)
"""Every word, in the order of the documentation. Of two that fit a name, the earlier wins."""
