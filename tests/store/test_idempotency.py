"""Answers under their keys: claimed once, found again, free again; over both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.store.idempotency import Claim, Kept
from tests.store.booking import Books

NOON = 1_790_000_000.0
DAY = 86_400.0
CLAIM = Claim("p1", "key-1", b"\x01\x02", "req_1", NOON, NOON + 60)
ANSWER = Kept(CLAIM.digest, "req_1", 200, {"content-type": "application/json"}, b"\x00{}\xff")


def later(seconds: float, request_id: str = "req_2") -> Claim:
    at = NOON + seconds
    return replace(CLAIM, request_id=request_id, at=at, held_until=at + 60)


async def test_of_many_claims_one_is_granted(books: Books) -> None:
    claims = [replace(CLAIM, request_id=f"req_{n}") for n in range(20)]
    answers = await asyncio.gather(*(books.store.claim_key(c, 0) for c in claims))
    assert answers.count(None) == 1
    (winner,) = (c for c, answer in zip(claims, answers, strict=True) if answer is None)
    for answer in answers:
        assert answer is None or answer == Kept(CLAIM.digest, winner.request_id, None, {}, None)


async def test_an_answer_is_found_until_it_is_too_old(books: Books) -> None:
    assert await books.store.claim_key(CLAIM, 0) is None
    await books.store.keep_answer(CLAIM, ANSWER, NOON + 1)
    assert await books.store.claim_key(later(5), NOON) == ANSWER
    assert await books.store.claim_key(later(99999), NOON + 1) == ANSWER
    assert await books.store.claim_key(later(99999), NOON + 2) is None, "from before `since`"


async def test_keys_of_two_projects_are_two_keys(books: Books) -> None:
    assert await books.store.claim_key(CLAIM, 0) is None
    assert await books.store.claim_key(replace(CLAIM, project="p2"), 0) is None


async def test_a_lapsed_claim_is_taken_over(books: Books) -> None:
    await books.store.claim_key(CLAIM, 0)
    assert await books.store.claim_key(later(59), 0) is not None
    await books.store.extend_claim(CLAIM, NOON + 100)
    assert await books.store.claim_key(later(61), 0) is not None
    assert await books.store.claim_key(later(101), 0) is None
    # what the first one still writes comes too late
    await books.store.keep_answer(CLAIM, ANSWER, NOON + 102)
    await books.store.release_key(CLAIM)
    found = await books.store.claim_key(later(103, "req_3"), 0)
    assert found is not None
    assert (found.request_id, found.status) == ("req_2", None)


async def test_release_frees_a_claim_and_no_answer(books: Books) -> None:
    await books.store.claim_key(CLAIM, 0)
    await books.store.release_key(CLAIM)
    assert await books.store.claim_key(later(1), 0) is None
    mine = later(1)
    await books.store.keep_answer(mine, replace_id(ANSWER, "req_2"), NOON + 1)
    await books.store.release_key(mine)
    await books.store.release_keys()
    assert await books.store.claim_key(later(2, "req_3"), 0) is not None


def replace_id(kept: Kept, request_id: str) -> Kept:
    return kept._replace(request_id=request_id)


async def test_retention_and_forgetting(books: Books) -> None:
    for number in range(3):
        claim = replace(CLAIM, project=f"p{number}", request_id=f"req_{number}")
        await books.store.claim_key(claim, 0)
        await books.store.keep_answer(claim, ANSWER, NOON)
    assert (await books.store.sweep(NOON + 0.5 * DAY, {}))["idempotency"] == 0
    await books.store.forget(project="p1")
    assert (await books.store.sweep(NOON + 1.5 * DAY, {}))["idempotency"] == 2


async def test_the_claim_of_a_dead_replica_does_not_stay_for_ever(books: Books) -> None:
    """But the claim of a call that is under way does, however long it takes."""
    dead = CLAIM
    alive = replace(CLAIM, project="p2")
    for claim in (dead, alive):
        await books.store.claim_key(claim, 0)
    await books.store.extend_claim(alive, NOON + 1.5 * DAY)
    assert (await books.store.sweep(NOON + 1.4 * DAY, {}))["idempotency"] == 1
    assert await books.store.claim_key(replace(later(1.4 * DAY), project="p2"), 0) is not None
    assert await books.store.claim_key(later(1.4 * DAY), 0) is None
