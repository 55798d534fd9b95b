"""Runs as callers see them: bodies in, objects and events out. Pure.

Knows of runs only their spec and their events; what they do is :mod:`gateway.runs`'s matter.
"""
