"""Every fault of the catalogue, in every way: no hang, no lie, and rescued where it can be."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.board import Board
from tests.faults.catalogue import FAULTS, Fault
from tests.faults.conduct import Case, Outcome, cases, meet
from tests.harness import Harness


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
async def test_the_conduct_is_right(g: Harness, board: Board, fault: Fault) -> None:
    at_once = asyncio.Semaphore(1 if fault.heavy else 50)

    async def one(case: Case) -> Outcome:
        async with at_once:
            return await meet(g, case)

    outcomes = await asyncio.gather(*map(one, cases(fault)))
    board.add(fault.name, outcomes)
    wrong = [f"{o.case.alias}: {line}" for o in outcomes for line in o.wrong]
    assert not wrong, "\n".join(wrong)


def test_the_catalogue_is_as_long_as_promised() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len(FAULTS) >= 30
