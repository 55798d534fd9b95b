"""The configuration: read once, checked whole, frozen.

``model`` is the shape of the file, ``load`` reads and checks it, ``snapshot`` is what the rest
of the house sees: immutable values, resolved once.
"""
