"""Names to dialects, and adapters from plain values."""

from __future__ import annotations

from typing import get_args

import pytest

from adapters.canonical.parts import Dialect
from adapters.registry import DIALECTS, Endpoint, build_adapter


def test_every_dialect_that_the_words_know_is_there():
    assert set(DIALECTS) == set(get_args(Dialect))
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("name", get_args(Dialect))
async def test_an_adapter_is_built_from_plain_values_and_opens_nothing(name):
    endpoint = Endpoint("p", name, "https://provider.invalid/v1", api_key="sk-1", pool_size=7)
    adapter = build_adapter(endpoint)
    assert adapter.dialect is DIALECTS[name]
    assert adapter.transport.pool.size == 7
    head = adapter.transport.peer().head("POST", "/x", {}, 0)
    assert head.startswith(b"POST /v1/x HTTP/1.1\r\nhost: provider.invalid\r\n")
    await adapter.close()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"dialect": "openai-caht"}, "openai-chat"),
        ({"base_url": "provider"}, "base_url"),
        ({"proxy": "provider"}, "proxy"),
        ({"ca_file": "/nowhere.pem"}, "ca_file"),
        ({"api_key": "sk-1\n"}, "authorization"),
        ({"headers": {"X-Org": "a\r\nb: c"}}, "x-org"),
    ],
)
def test_what_can_not_work_names_the_provider_and_the_setting(changed, named):
    values = {"name": "acme", "dialect": "openai-chat", "base_url": "https://p", **changed}
    with pytest.raises(ValueError, match=rf"'acme'.*{named}") as caught:
        build_adapter(Endpoint(**values))
    assert "sk-1" not in str(caught.value)


def test_no_key_and_no_url_in_a_repr():
    endpoint = Endpoint("p", "openai-chat", "https://p", api_key="sk-1", headers={"x": "sk-2"})
    assert repr(endpoint) == "Endpoint('p', 'openai-chat')"
    assert "sk-" not in repr(build_adapter(endpoint))
