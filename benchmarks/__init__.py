"""What the gateway costs, as ratios to a bare relay in the same run. ``make bench`` starts here.

:mod:`benchmarks.mock` is the upstream, :mod:`benchmarks.floor` the bare relay,
:mod:`benchmarks.load` the callers, :mod:`benchmarks.__main__` puts them together.
"""
