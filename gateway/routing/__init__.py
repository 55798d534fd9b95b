"""Which deployment answers a call, and what happens after one failed.

Pure: no IO, no ``async``, no clock and no chance of its own; time and random numbers come in
as arguments. Must not know dialects, sockets or the store.
"""
