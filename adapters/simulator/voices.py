"""The three protocols, each put together from its parts."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.simulator import (
    anthropic_messages,
    anthropic_messages_request,
    judge_chat,
    judge_messages,
    judge_responses,
    openai_chat,
    openai_responses,
    openai_responses_request,
)
from adapters.simulator.voice import Mint, Voice


def _openai_headers(mint: Mint) -> Mapping[str, str]:
    return {
        "x-request-id": mint.new("req_", 32),
        "openai-version": "2020-10-01",
        "openai-processing-ms": "12",
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-limit-tokens": "30000000",
        "x-ratelimit-remaining-tokens": "29999976",
    }


def _anthropic_headers(mint: Mint) -> Mapping[str, str]:
    return {
        "request-id": mint.new("req_01", 22),
        "anthropic-ratelimit-requests-limit": "4000",
        "anthropic-ratelimit-requests-remaining": "3999",
        "anthropic-ratelimit-input-tokens-limit": "4000000",
        "anthropic-ratelimit-input-tokens-remaining": "3999000",
    }


CHAT = Voice(
    name="openai-chat",
    judge=judge_chat.judge,
    read=openai_chat.read,
    whole=openai_chat.whole,
    stream=openai_chat.stream,
    error=openai_chat.error,
    break_off=openai_chat.break_off,
    headers=_openai_headers,
)
RESPONSES = Voice(
    name="openai-responses",
    judge=judge_responses.judge,
    read=openai_responses_request.read,
    whole=openai_responses.whole,
    stream=openai_responses.stream,
    error=openai_chat.error,
    break_off=openai_responses.break_off,
    headers=_openai_headers,
)
MESSAGES = Voice(
    name="anthropic-messages",
    judge=judge_messages.judge,
    read=anthropic_messages_request.read,
    whole=anthropic_messages.whole,
    stream=anthropic_messages.stream,
    error=anthropic_messages.error,
    break_off=anthropic_messages.break_off,
    headers=_anthropic_headers,
)
