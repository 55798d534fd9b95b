"""The dialects by their names, and a provider's adapter from plain values.

To add a dialect: write its package with a ``DIALECT``, and name it here. Must not know the
settings file: whoever does passes plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from adapters.adapter import Adapter
from adapters.canonical.clock import Clock
from adapters.canonical.facts import Facts
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record
from adapters.canonical.request import Request
from adapters.dialects.anthropic_messages import DIALECT as ANTHROPIC_MESSAGES
from adapters.dialects.anthropic_messages.encode import encode_count
from adapters.dialects.base import Dialect
from adapters.dialects.openai_chat import DIALECT as OPENAI_CHAT
from adapters.dialects.openai_responses import DIALECT as OPENAI_RESPONSES
from adapters.transport.http import POOL_SIZE, HttpTransport
from adapters.wire.call import Encoded

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (OPENAI_RESPONSES, ANTHROPIC_MESSAGES, OPENAI_CHAT)}
)
"""Every southbound dialect, by the name that the settings use."""

COUNTS: Mapping[str, Callable[[Request, str, Facts], Encoded]] = MappingProxyType(
    {ANTHROPIC_MESSAGES.name: encode_count}
)
"""The dialects whose providers count a request's tokens when asked, and how they are asked."""


@record(frozen=True, slots=True)
class Endpoint:
    """Where a provider is and how to reach it, as plain values.

    ``name`` is the provider's name in the settings, for error messages. ``headers`` go with
    every call (``anthropic-version`` among them); they win over what a caller's request brings.
    ``api_key`` is ``None`` where the server wants none. ``ca_file`` replaces the system's
    authorities. ``pool_size`` is the most calls at once.
    """

    name: str
    dialect: str
    base_url: str
    api_key: str | None = None
    headers: Mapping[str, str] = NO_EXTRAS
    proxy: str | None = None
    ca_file: str | None = None
    pool_size: int = POOL_SIZE

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.dialect!r})"  # never the key


def build_adapter(endpoint: Endpoint, clock: Clock | None = None) -> Adapter:
    """The adapter for a provider. Opens no socket before the first call.

    :raises ValueError: for an unknown dialect, a URL that is none, an unreadable CA file, or
        a header that can't be sent; the message names the provider and the setting.
    """
    dialect = DIALECTS.get(endpoint.dialect)
    if dialect is None:
        raise ValueError(
            f"provider {endpoint.name!r}: unknown dialect {endpoint.dialect!r}; "
            f"there are {', '.join(DIALECTS)}"
        )
    try:
        transport = HttpTransport(
            endpoint.base_url,
            pool_size=endpoint.pool_size,
            proxy=endpoint.proxy,
            ca_file=endpoint.ca_file,
            clock=clock,
        )
        return Adapter(
            dialect, transport, api_key=endpoint.api_key, headers=endpoint.headers, clock=clock
        )
    except ValueError as error:
        raise ValueError(f"provider {endpoint.name!r}: {error}") from error
