"""Whole numbers as people type them, none beyond what the books keep."""

from __future__ import annotations

import argparse

from gateway.settings.bounds import MOST_COUNT

MOST_DIGITS = len(str(MOST_COUNT))


def count(text: str) -> int:
    """How many of something; 0 is a number like any other."""
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) > MOST_COUNT:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {MOST_COUNT}")
    return int(text)
