"""Prompts in the books: versions that stay, labels that move, changes that every process sees."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.store.prompts import PromptLabel, PromptRow
from tests.store.booking import Books

FIRST = PromptRow(
    "support", 1, "a" * 64, 5.5, {"system": "é {{ x }}", "variables": {"x": "string"}}
)
SECOND = PromptRow("support", 2, "b" * 64, 6.5, {"system": "two"})
OTHER = PromptRow("other", 1, "c" * 64, 7.5, {"user": "hi"})


async def test_a_version_comes_back_as_it_was_given(books: Books) -> None:
    for row in (SECOND, FIRST, OTHER):
        assert await books.store.add_prompt(row)
    assert await books.store.prompts() == [OTHER, FIRST, SECOND]


async def test_a_version_never_changes(books: Books) -> None:
    assert await books.store.add_prompt(FIRST)
    assert not await books.store.add_prompt(replace(FIRST, definition={"system": "other"}))
    assert await books.store.prompts() == [FIRST]


async def test_of_many_writers_one_gets_the_number(books: Books) -> None:
    rows = [replace(FIRST, hash=str(n)) for n in range(10)]
    written = await asyncio.gather(*(books.store.add_prompt(row) for row in rows))
    assert written.count(True) == 1
    assert (await books.store.prompts())[0].hash == str(written.index(True))


async def test_a_label_moves_and_goes(books: Books) -> None:
    for row in (FIRST, SECOND):
        await books.store.add_prompt(row)
    label = PromptLabel("support", "production", 1)
    assert await books.store.set_prompt_label(label)
    assert await books.store.set_prompt_label(label._replace(version=2))
    assert await books.store.prompt_labels() == [label._replace(version=2)]
    assert not await books.store.set_prompt_label(label._replace(version=3)), "no such version"
    assert not await books.store.set_prompt_label(label._replace(name="nobody"))
    assert await books.store.drop_prompt_label("support", "production")
    assert not await books.store.drop_prompt_label("support", "production")
    assert await books.store.prompt_labels() == []


async def test_another_process_sees_each_change(books: Books) -> None:
    async with Books(books.url, serving=False) as other:
        seen = [await books.store.prompts_version()]
        await other.store.add_prompt(FIRST)
        seen.append(await books.store.prompts_version())
        await other.store.set_prompt_label(PromptLabel("support", "x", 1))
        seen.append(await books.store.prompts_version())
        await other.store.drop_prompt_label("support", "x")
        seen.append(await books.store.prompts_version())
        assert seen == sorted(set(seen)), "grows each time"
        await other.store.add_prompt(FIRST)
        await other.store.drop_prompt_label("support", "x")
        assert await books.store.prompts_version() == seen[-1], "nothing changed"
