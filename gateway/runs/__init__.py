"""Runs: agents and workflows whose every step is an event in a ledger.

Read :mod:`~gateway.runs.events` for the words, :mod:`~gateway.runs.state` for what they add up
to, :mod:`~gateway.runs.agent` for what follows from that; those three are pure. The rest does it:
``ledger`` writes, ``executor`` acts, ``supervisor`` keeps, ``tail`` tells. Must not know HTTP,
SQL or any provider.
"""
