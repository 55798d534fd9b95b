"""The pepper: from the settings, or a file that is made once and guarded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.settings.snapshot import Secret, StoreSettings
from gateway.store import StoreError, pepper


def test_the_setting_wins(sqlite_url: str, tmp_path: Path) -> None:
    settings = StoreSettings(url=sqlite_url)
    assert pepper(settings, Secret("from the settings")) == b"from the settings"
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_made_at_first_use(sqlite_url: str, tmp_path: Path) -> None:
    settings = StoreSettings(url=sqlite_url)
    made = pepper(settings, None)
    assert len(made) == 64
    assert pepper(settings, None) == made
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("gateway.db.pepper", 0o600)


def test_of_many_that_start_at_once_one_makes_it(sqlite_url: str) -> None:
    settings = StoreSettings(url=sqlite_url)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: pepper(settings, None), range(40)))
    assert len(set(found)) == 1


def test_a_file_that_others_can_read_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    settings = StoreSettings(url=sqlite_url)
    pepper(settings, None)
    (tmp_path / "gateway.db.pepper").chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        pepper(settings, None)


def test_a_damaged_file_is_no_pepper(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "gateway.db.pepper"
    file.touch(mode=0o600)
    with pytest.raises(StoreError, match="damaged"):
        pepper(StoreSettings(url=sqlite_url), None)


def test_an_empty_setting_is_no_pepper(sqlite_url: str) -> None:
    with pytest.raises(StoreError, match="empty"):
        pepper(StoreSettings(url=sqlite_url), Secret(""))


def test_postgres_needs_the_setting() -> None:
    with pytest.raises(StoreError, match=r"\[server\] pepper"):
        pepper(StoreSettings(url="postgresql://u@h/db"), None)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="can't be read or made"):
        pepper(StoreSettings(url=f"sqlite:///{tmp_path}/none/gateway.db"), None)
