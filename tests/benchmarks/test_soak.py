"""The short form of the soak: two minutes of mixed load with faults and callers that leave."""

from __future__ import annotations

import sys
from subprocess import PIPE, STDOUT, run

import pytest

pytestmark = [pytest.mark.all, pytest.mark.timeout(300)]


def test_nothing_is_left_after_two_minutes() -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "2", "--workers", "12"]
    # ceilings for a busy machine and a short warm-up; `make soak` holds the bars themselves
    command += ["--lag", "0.5", "--growth", "1.15"]
    done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
