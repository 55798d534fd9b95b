"""The ``gateway`` command: one module a command family.

Start at :mod:`gateway.cli.main`. A family's module says its arguments at once and imports what
it needs only when it runs, so that ``--help`` costs nothing.
"""
