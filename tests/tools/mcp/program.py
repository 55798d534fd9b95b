"""An MCP server made with the official SDK, for tests: a program that speaks over stdio.

``python program.py FILE`` writes a line to FILE for each effect. The HTTP tests use :func:`made`.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def made(effect: Callable[[str], Any], *, words: str = "Adds.", extra: bool = False) -> MCPServer:
    """The server; ``effect`` is told of each call that has one."""
    server = MCPServer("test")

    @server.tool(description=words)
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool(name="say.it", description="Repeats.")
    async def say(text: str) -> str:
        return text

    @server.tool(description="Fails.")
    async def fail() -> str:
        raise ValueError("it is broken")

    @server.tool(description="Draws.", structured_output=False)
    async def draw() -> list[Any]:
        return ["a pixel:", Image(data=PIXEL, format="png")]

    @server.tool(description="Has an effect, slowly.")
    async def book(room: str, seconds: float, ctx: Context[Any]) -> str:
        await ctx.report_progress(1, 4, "begun")
        effect(f"{room} {ctx.request_context.meta}")
        await asyncio.sleep(seconds)
        return f"booked {room}"

    @server.tool(description="Ends the program.")
    async def die() -> str:
        os._exit(3)

    @server.tool(description="What the program was started with.")
    async def environment() -> list[str]:
        return sorted(os.environ)

    @server.tool(description="Makes the server offer one tool more.")
    async def grow(ctx: Context[Any]) -> str:
        server.add_tool(say, name="grown", description="New.")
        await ctx.notify_tools_changed()  # to those who subscribed, by the protocol of 2026
        await ctx.session.send_tool_list_changed()  # to a session, by the earlier ones
        return "grown"

    if extra:
        server.add_tool(say, name="extra", description="Only after a restart.")
    return server


def main() -> None:
    place = sys.argv[1]

    def effect(line: str) -> None:
        with open(place, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    effect("started")
    made(effect).run("stdio")


if __name__ == "__main__":
    main()
