"""A process of its own that opens and settles attempts until it is killed.

``python -m tests.store.crashing URL`` prints a line for each acknowledged entry: ``open ID`` or
``settled ID COST``. The parent kills it at a random moment and looks at what is left.
"""

from __future__ import annotations

import asyncio
import random
import sys

from tests.store.booking import Books


async def _worker(books: Books, worker: int) -> None:
    dice = random.Random(worker)
    while True:
        ticket = await books.open(nano=1000)
        print("open", ticket.attempt.id, flush=True)
        await asyncio.sleep(dice.random() * 0.003)
        cost = dice.randrange(1500)
        await books.settle(ticket, cost_nano=cost)
        print("settled", ticket.attempt.id, cost, flush=True)


async def main(url: str) -> None:
    async with Books(url) as books, asyncio.TaskGroup() as group:
        for worker in range(8):
            group.create_task(_worker(books, worker))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
