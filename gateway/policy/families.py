"""How each family of models counts text, framing and images: measured numbers, no code.

The factors were fitted (non-negative least squares on the relative error, large errors damped)
to the tokenizers named below over 387 samples of 600 to 3,000 characters: English prose and
legal text, Markdown, Python, JavaScript, HTML, CSS, JSON, tool schemas, logs, numbers, base64,
hex, emoji, and interface texts in 22 languages. The framing was read off recorded usage (92
answered requests of three protocols); ``python -m pytest tests/policy/test_tokens.py -s`` prints
how far each family is off today. Must not know requests.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.canonical.record import record
from gateway.policy.images import Size, area, squares, tiles

CLASSES: tuple[tuple[str, bytes], ...] = (
    ("l", bytes(range(ord("a"), ord("z") + 1))),
    ("U", bytes(range(ord("A"), ord("Z") + 1))),
    ("d", b"0123456789"),
    ("s", b" "),
    ("n", b"\t\n\r"),
    ("p", bytes(b for b in range(0x21, 0x7F) if not chr(b).isalnum())),
    ("t", bytes(range(0xC2, 0xCE))),
    ("g", b"\xce\xcf"),
    ("c", bytes(range(0xD0, 0xD4))),
    ("h", bytes(range(0xD4, 0xE0))),
    ("i", b"\xe0"),
    ("v", b"\xe1"),
    ("q", b"\xe2\xef"),
    ("k", b"\xe3"),
    ("z", bytes(range(0xE4, 0xEA))),
    ("o", bytes(range(0xEA, 0xEE))),
    ("f", bytes(range(0xF0, 0xF5))),
)
"""A code and the bytes it stands for: ASCII, then the lead bytes of UTF-8, one for a character."""

NAMES = ("o200k", "cl100k", "claude", "qwen", "tekken", "quarter")
_ROWS: tuple[tuple[str, tuple[float, ...]], ...] = (
    #                          o200k  cl100k claude qwen   tekken quarter
    ("l  lower-case letters", (0.113, 0.097, 0.112, 0.100, 0.127, 0.25)),
    ("U  upper-case letters", (0.253, 0.276, 0.173, 0.222, 0.409, 0.25)),
    ("d  digits", (0.677, 0.608, 0.528, 1.268, 1.214, 0.25)),
    ("s  spaces", (0.0, 0.0, 0.0, 0.0, 0.0, 0.25)),
    ("n  line ends, tabs", (1.306, 1.364, 1.471, 1.302, 1.223, 0.25)),
    ("p  signs", (0.465, 0.473, 0.550, 0.461, 0.485, 0.25)),
    ("t  accented Latin", (1.082, 1.976, 3.299, 1.580, 1.391, 0.5)),
    ("g  Greek", (0.335, 0.960, 1.203, 0.907, 0.364, 0.5)),
    ("c  Cyrillic", (0.213, 0.386, 0.497, 0.262, 0.262, 0.5)),
    ("h  Armenian to Arabic", (0.299, 0.776, 0.999, 0.319, 0.304, 0.5)),
    ("i  Indic, Thai", (0.309, 1.055, 1.757, 0.874, 0.447, 0.75)),
    ("v  Vietnamese, Georgian", (0.298, 1.957, 1.325, 0.972, 0.434, 0.75)),
    ("q  typographic signs", (0.3, 0.3, 0.3, 1.059, 0.3, 0.75)),
    ("k  kana, CJK signs", (0.553, 0.875, 0.930, 0.516, 0.562, 0.75)),
    ("z  Han", (0.747, 0.999, 0.926, 0.570, 0.918, 0.75)),
    ("o  Hangul", (0.529, 0.932, 1.200, 0.626, 0.604, 0.75)),
    ("f  emoji, rare Han", (1.679, 2.097, 2.912, 1.767, 3.139, 1.0)),
    ("words", (0.522, 0.591, 0.575, 0.592, 0.473, 0.0)),
    ("camelCase joints", (1.954, 1.912, 1.689, 2.054, 1.619, 0.0)),
    ("letter-digit joints", (0.296, 0.484, 0.771, 0.152, 0.222, 0.0)),
)
TOKENIZERS: dict[str, tuple[float, ...]] = {
    name: tuple(row[1][column] for row in _ROWS) for column, name in enumerate(NAMES)
}
"""Tokens for each character of a class and for each joint. ``claude`` is the tokenizer that
Anthropic published for Claude 2 (recorded usage of Claude 4 agrees); ``qwen`` and ``tekken`` come
with the packages of Alibaba and Mistral; ``quarter`` is the simulator's rule."""


@record(frozen=True, slots=True)
class Family:
    """A family's tokenizer and framing, in tokens.

    ``scale`` multiplies the tokenizer's factors. ``base`` and ``message`` frame a request and
    each message; ``tools`` is the prompt that any tools bring along (known only to within
    itself: it differs by model and by ``tool_choice``), ``tool`` frames each; ``schema`` frames
    an output schema. ``image`` counts an image of known size, ``image_most``
    is the dearest. ``error`` is the share of the text's tokens that bounds its error, ``least``
    bounds the framing's.
    """

    tokenizer: str
    error: float
    scale: float = 1.0
    base: int = 3
    message: int = 4
    tools: int = 5
    tool: int = 5
    schema: int = 5
    image: Callable[[Size], int] = area
    image_most: int = 1600
    least: int = 32


FAMILIES: dict[str, Family] = {
    "openai": Family("o200k", 0.25, image=tiles, image_most=1445, least=24),
    "anthropic": Family("claude", 0.35, tools=500, tool=30, schema=150),
    "anthropic-5": Family(
        "claude", 0.35, scale=1.35, tools=500, tool=40, schema=200, image_most=4800
    ),
    "gemini": Family("o200k", 0.30, image=squares, image_most=1806),
    "mistral": Family("tekken", 0.30, tools=20),
    "qwen": Family("qwen", 0.35, base=25),
    "deepseek": Family("qwen", 0.35),
    "kimi": Family("qwen", 0.35, base=25),
    "glm": Family("qwen", 0.35, base=25),
    "llama": Family("cl100k", 0.35, base=40),
    "grok": Family("o200k", 0.35, base=10, message=9, tools=140, tool=15, image_most=1800),
    "simulator": Family("quarter", 0.10, base=1, message=1, tools=0, image_most=85, least=16),
    "unknown": Family("cl100k", 0.45, base=25, tools=150, tool=15, schema=50, least=64),
}
"""Rows by ``Facts.family``; any other family counts as ``unknown``."""
