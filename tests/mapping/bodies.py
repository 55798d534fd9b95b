"""One body for each door that has in it about everything that a body can have."""

from __future__ import annotations

from typing import Any

DATA = "iVBORw0KGgo="
PNG = f"data:image/png;base64,{DATA}"
PDF = f"data:application/pdf;base64,{DATA}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

CHAT_BODY: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "r"}],
            "reasoning_content": "t",
            "audio": {"id": "audio_1"},
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "i"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "t"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "t"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        {"type": "custom", "custom": {"name": "g"}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "stream": True,
    "stream_options": {"include_usage": True},
}
RESPONSES_BODY: dict[str, Any] = {
    "input": [
        {"type": "message", "role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "t"},
                {"type": "input_image", "image_url": PNG, "detail": "low"},
                {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "t"}],
            "encrypted_content": "sealed",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "t",
                    "annotations": [{"type": "url_citation", "url": "https://a.example"}],
                },
                {"type": "refusal", "refusal": "r"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "more"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "i"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"q": "a"}},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "t"}],
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "t"},
        {"role": "user", "content": "go on"},
    ],
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "custom", "name": "g", "format": {"type": "text"}},
        {"type": "web_search", "filters": {"allowed_domains": []}},
    ],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "reasoning": {"effort": "low"},
    "stream_options": {"include_obfuscation": False},
}
MESSAGES_BODY: dict[str, Any] = {
    "max_tokens": 20_000,
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": DATA},
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "t"},
                    "citations": {"enabled": True},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "c2lnbmVk"},
                {"type": "text", "text": "t", "citations": [{"type": "char_location"}]},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "t"}],
                },
                {"type": "text", "text": "go on"},
            ],
        },
    ],
    "tools": [
        {"name": "f", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "tool_choice": {"type": "auto"},
    "metadata": {"user_id": "u"},
    "output_config": {"effort": "low"},
    "thinking": {"type": "enabled", "budget_tokens": 2048},
}
