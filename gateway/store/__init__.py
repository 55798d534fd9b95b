"""The books: one interface, SQLite and PostgreSQL behind it.

The only room that knows SQL. Money is integer nano-dollars, times are Unix seconds as floats.
"""
