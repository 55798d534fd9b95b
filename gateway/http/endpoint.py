"""A door on bare ASGI: what all of them do around the call itself.

Whatever goes wrong is answered in the door's dialect, and while a request is served it can be
told to end (:class:`gateway.services.state.Stoppable`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from gateway.http.body import Disconnected, Receive
from gateway.http.exchange import Exchange, Scope, Send
from gateway.policy.auth import Principal
from gateway.services.state import State

MEGABYTE = 1024 * 1024


class Endpoint(ABC):
    """An ASGI endpoint that answers in ``dialect``."""

    def __init__(self, state: State, dialect: Dialect) -> None:
        self._state = state
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; whatever goes wrong is answered in the dialect."""
        exchange = Exchange(scope, receive, send, self._dialect)
        self._state.live.add(exchange)
        try:
            await self._serve(exchange)
        except Fault as fault:
            await exchange.fail(fault)
        except Disconnected:
            exchange.gone = True
        except asyncio.CancelledError:
            stop = exchange.stopped()
            if stop is not None and not exchange.started:
                await exchange.fail(stop)
        finally:
            exchange.unwatch()
            self._state.live.discard(exchange)

    def _caller(self, exchange: Exchange, now: float) -> Principal:
        """Who asks.

        :raises Fault: ``unauthenticated``.
        """
        keyring = self._state.keyring
        principal = keyring.principal(exchange.found(keyring.presented), now)
        exchange.know(self)
        return principal

    @abstractmethod
    def _serve(self, exchange: Exchange) -> Awaitable[None]:
        """Answer one request.

        :raises Fault: for what has not been answered yet.
        """


def is_strict(headers: Mapping[str, str], dropped: Sequence[str]) -> bool:
    """Whether the caller would rather have a 400 than a dropped field.

    :param dropped: what no provider will see, whichever takes the call.
    :raises Fault: ``unsupported`` if that is so and something was dropped already.
    """
    strict = headers.get("x-gateway-strict", "").lower() in ("1", "true", "yes")
    if strict and dropped:
        raise Fault(
            "unsupported",
            f"{', '.join(dropped)}: this gateway sends it to no provider, and x-gateway-strict "
            "forbids to leave anything out. Remove it, or send the request without that header.",
            param=dropped[0],
        )
    return strict
