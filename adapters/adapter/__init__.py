"""Where a dialect meets a socket.

``provider`` is what all else calls, one a provider; ``flow`` is an answer on its way, event by
event; ``reply`` judges status and headers.
"""

from adapters.adapter.flow import Way
from adapters.adapter.provider import Adapter, Fetched, Pumped

__all__ = ["Adapter", "Fetched", "Pumped", "Way"]
