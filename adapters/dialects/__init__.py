"""One package a protocol: ``encode decode stream errors`` and a ``FIELDS`` table.

A dialect is pure: a request in, bytes out; frames in, events out. It never meets a socket and
knows no other dialect.
"""
