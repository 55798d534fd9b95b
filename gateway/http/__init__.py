"""The doors: paths, keys, bytes. No other logic; what a door does is below."""
