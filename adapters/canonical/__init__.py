"""The words of the house: requests, parts, events, faults, facts.

Every dialect, northbound or southbound, translates to and from these and nothing else, so
that three dialects need three codecs and not nine translators. Pure data: no IO, no vendor
JSON, no clock.
"""
