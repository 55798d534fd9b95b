"""A provider that speaks all three protocols over real HTTP and can be told to fail.

``gateway simulate`` serves it, the demo runs it beside the gateway, the tests read its log.
What it answers and how it fails is chosen by the model's name; :data:`CATALOGUE` lists the
words. It judges requests as strictly as the real providers do, and shares no code with the
gateway's own dialects, so that it can be trusted as their judge.
"""

from adapters.simulator.catalogue import CATALOGUE, Entry
from adapters.simulator.log import Attempt, Log
from adapters.simulator.server import Simulator, running, serve
from adapters.simulator.words import (
    Answer,
    Call,
    Frame,
    Raw,
    Refuse,
    Reply,
    Say,
    Think,
    Usage,
    Wait,
)

__all__ = [
    "CATALOGUE",
    "Answer",
    "Attempt",
    "Call",
    "Entry",
    "Frame",
    "Log",
    "Raw",
    "Refuse",
    "Reply",
    "Say",
    "Simulator",
    "Think",
    "Usage",
    "Wait",
    "running",
    "serve",
]
