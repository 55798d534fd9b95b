"""The callers' protocols: vendor JSON in, vendor JSON out, the canonical words between.

Pure: no socket, no clock, no store. ``gateway.http`` hands in bytes and sends out bytes;
everything that knows a field name of a caller's dialect is in here.
"""
