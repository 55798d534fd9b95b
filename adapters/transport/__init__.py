"""The only owner of sockets southbound: one call is one request on the wire.

Must not know any vendor's JSON, nor the canonical events: it moves bytes, holds the four
time-outs, and says in a :class:`~adapters.canonical.faults.Fault` why bytes did not come.
"""
