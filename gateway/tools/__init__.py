"""What agents may do besides talking: tools, behind one protocol.

:mod:`gateway.tools.base` has the words. Must not know runs, models or HTTP endpoints.
"""
