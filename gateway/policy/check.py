"""What the policy room finds wrong with a configuration, before the port opens."""

from __future__ import annotations

from gateway.policy.prompts import settings as prompts
from gateway.policy.redaction import settings as redaction
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot


def check(snapshot: Snapshot) -> list[Problem]:
    """Patterns that are not linear, templates that can't be rendered, names that lead nowhere."""
    return [*redaction.check(snapshot), *prompts.check(snapshot)]
