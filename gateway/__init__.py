"""The gateway: one door for every application to every model, which keeps the books.

Start reading at :mod:`gateway.flow.complete`: the path that every call walks.
"""
