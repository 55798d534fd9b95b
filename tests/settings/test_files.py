"""Files as editors leave them, and values that pass for sound until the first call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings.load import load
from gateway.settings.problems import ConfigError
from gateway.settings.snapshot import Snapshot


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_whatever_the_editor(
    tmp_path: Path, base: str, environment: dict[str, str], mark: bytes, end: str
) -> None:
    file = tmp_path / "gateway.toml"
    text = base + '[server]\nhots = "x"\n'
    file.write_bytes(mark + base.replace("\n", end).encode())
    assert "smart" in load(file, environment).aliases
    file.write_bytes(mark + text.replace("\n", end).encode())
    with pytest.raises(ConfigError) as refused:
        load(file, environment)
    assert refused.value.problems[0].line == text.splitlines().index('hots = "x"') + 1


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "GATEWAY_KEY"])
def test_a_mark_before_a_secret_is_no_part_of_it(
    tmp_path: Path, base: str, environment: dict[str, str], name: str
) -> None:
    (tmp_path / "secret").write_bytes(b"\xef\xbb\xbfsk-upstream\r\n")
    file = tmp_path / "gateway.toml"
    file.write_text(base.replace(f"${{{name}}}", "file:secret"))
    snapshot = load(file, environment)
    read = snapshot.keys[0].key if name == "GATEWAY_KEY" else snapshot.providers["openai"].api_key
    assert read is not None
    assert read.reveal() == "sk-upstream"


@pytest.mark.parametrize("key", [" ", "sk-a\n", "sk-a\nsk-b", "sk\x00", " sk"])
def test_a_key_that_nobody_can_send(loaded: Callable[..., Snapshot], key: str) -> None:
    """It opened nothing, and nobody was told why."""
    with pytest.raises(ConfigError) as refused:
        loaded(environment={"OPENAI_API_KEY": "x", "GATEWAY_KEY": key})
    (problem,) = refused.value.problems
    assert "no caller can send" in problem.message
    assert key.strip() not in problem.message or not key.strip()


def test_a_body_without_end(loaded: Callable[..., Snapshot]) -> None:
    """1e308 passed, and each call was a 500."""
    with pytest.raises(ConfigError) as refused:
        loaded("[server]\nmax_body_mb = 1e308\n")
    assert refused.value.problems[0].message == "must be 1000000 or less"
    assert loaded("[server]\nmax_body_mb = 1e6\n").server.max_body_mb == 1e6
