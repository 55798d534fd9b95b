"""How one call is carried from its caller to a provider and back, and written down.

:mod:`gateway.flow.complete` is the path; read it first.
"""
