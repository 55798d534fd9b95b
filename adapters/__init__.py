"""Everything that speaks to providers: the canonical words, the wire, the dialects, the sockets.

Nothing in here may import :mod:`gateway`: a dialect does not know that keys, ledgers or
callers exist (`docs/architecture.md`, "the wall").
"""
