"""The shapes on the wire: SSE frames, calls and replies, and the vendors' JSON.

Used north and south alike. Knows bytes and field names, not sockets and not meaning.
"""
