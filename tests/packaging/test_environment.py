"""``.ci/environment`` makes .venv, keeps it, and heals it, whatever happened to it.

The Python here is a stand-in that does in no time what the real one does, so that every turn
can be taken; ``test_clone.py`` takes the whole way with the real one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STAND_IN = """\
#!/bin/sh
# A Python that can be told its version, and that writes down what it is asked to do.
here=$(dirname "$0")
version=$(cat {version})
echo "$@" >>{log}
case "$*" in
*"import sys, venv, ensurepip"*) [ -e {state}/no-ensurepip ] && exit 1; [ ! -e {state}/old ] ;;
*"sys.exit(sys.version_info < (3, 11))"*) [ ! -e {state}/old ] ;;
*"%d.%d"*) [ -e {state}/old ] && echo 3.9 || echo 3.11 ;;
*"import sys, platform"*|*"print(sys.version)"*)
    [ ! -e "$here/broken" ] || exit 1
    case "$here" in *.venv/bin) cat "$here/version" ;; *) echo "$version" ;; esac ;;
"-m venv .venv")
    mkdir -p .venv/bin .venv/lib/python3.11/site-packages/uvicorn &&
    cp "$0" .venv/bin/python && echo "$version" >.venv/bin/version ;;
*"--editable"*) touch .venv/bin/gateway && chmod +x .venv/bin/gateway ;;
*"pip"*install*) [ ! -e {state}/killed ] || kill -9 $PPID; [ ! -e {state}/offline ] ;;
esac
"""


class Machine:
    """A copy of the project's files beside a stand-in for Python."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.state = folder / "state"
        self.log = folder / "log"
        self._version = folder / "version"
        programs = folder / "bin"
        for path in (self.tree / ".ci", self.state, programs):
            path.mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "environment", self.tree / ".ci")
        for name in ("pyproject.toml", "requirements-build.txt", "requirements.txt",
                     "requirements-dev.txt"):  # fmt: skip
            (self.tree / name).write_text(name)
        self.upgrade("3.11.7")
        python = programs / "python3"
        python.write_text(STAND_IN.format(version=self._version, log=self.log, state=self.state))
        python.chmod(0o755)
        for tool in ("sh", "cat", "cksum", "dirname", "mkdir", "cp", "rm", "mv", "touch", "chmod"):
            found = shutil.which(tool)
            assert found is not None
            (programs / tool).symlink_to(found)
        self._environment = {"PATH": str(programs)}

    @property
    def venv(self) -> Path:
        return self.tree / ".venv"

    def upgrade(self, version: str) -> None:
        self._version.write_text(version)

    def make(self, kind: str = "run", *, fails: bool = False) -> str:
        """Run the script; what it said."""
        self.log.write_text("")
        done = subprocess.run(
            [str(self.tree / ".ci" / "environment"), kind],
            env=self._environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr

    @property
    def installs(self) -> list[str]:
        """What was installed by the last run: the locked files."""
        lines = [line for line in self.log.read_text().splitlines() if "--require-hashes" in line]
        return [line.rpartition(" ")[2] for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_is_made_once(machine: Machine) -> None:
    machine.make()
    assert machine.installs == ["requirements.txt"]
    assert machine.make() == ""
    assert machine.installs == []


def test_tests_need_more(machine: Machine) -> None:
    machine.make("run")
    machine.make("test")
    assert machine.installs == ["requirements-dev.txt"]
    machine.make("run")
    assert machine.installs == []


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements-build.txt", "pyproject.toml"]
)
def test_a_changed_requirement_makes_it_stale(machine: Machine, name: str) -> None:
    machine.make()
    (machine.tree / name).write_text("changed")
    machine.make()
    assert machine.installs == ["requirements.txt"]


def interrupted(machine: Machine) -> None:
    """The install was cut: no mark of completion."""
    (machine.venv / ".complete").unlink()


def broken(machine: Machine) -> None:
    """Its Python does not run any more."""
    (machine.venv / "bin" / "broken").touch()


def upgraded(machine: Machine) -> None:
    """The system's Python is another one now."""
    machine.upgrade("3.12.1")


def emptied(machine: Machine) -> None:
    """Somebody removed the program."""
    (machine.venv / "bin" / "gateway").unlink()


def thinned(machine: Machine) -> None:
    """Somebody removed a package; its notes, which pip believes, may still be there."""
    (machine.venv / "lib" / "python3.11" / "site-packages" / "uvicorn").rmdir()


def moved(machine: Machine) -> None:
    """The folder was moved: scripts in it name the old place."""
    stamp = machine.venv / ".complete"
    stamp.write_text(stamp.read_text().replace(str(machine.tree), "elsewhere"))


@pytest.mark.parametrize("harm", [interrupted, broken, upgraded, emptied, thinned, moved])
def test_it_heals(machine: Machine, harm: Callable[[Machine], None]) -> None:
    machine.make()
    harm(machine)
    machine.make()
    assert machine.installs == ["requirements.txt"]
    assert machine.make() == ""
    assert machine.installs == []


@pytest.mark.parametrize("harm", [interrupted, broken, upgraded, emptied, thinned, moved])
def test_what_can_not_be_healed_is_made_anew(
    machine: Machine, harm: Callable[[Machine], None]
) -> None:
    machine.make()
    (machine.venv / "old").touch()
    harm(machine)
    machine.make()
    assert not (machine.venv / "old").exists()


def test_an_install_that_fails_is_not_taken_for_done(machine: Machine) -> None:
    (machine.state / "offline").touch()
    machine.make(fails=True)
    assert not (machine.venv / ".complete").exists()
    (machine.state / "offline").unlink()
    machine.make()
    assert (machine.venv / "bin" / "gateway").exists()


def test_an_update_that_was_killed_is_not_taken_for_done(machine: Machine) -> None:
    """Not even where the requirements are what they were before it."""
    machine.make()
    (machine.tree / "requirements.txt").write_text("changed")
    (machine.state / "killed").touch()
    machine.make(fails=True)
    (machine.state / "killed").unlink()
    (machine.tree / "requirements.txt").write_text("requirements.txt")
    machine.make()
    assert machine.installs == ["requirements.txt"]


def test_without_venv_it_names_the_package(machine: Machine) -> None:
    (machine.state / "no-ensurepip").touch()
    said = machine.make(fails=True)
    assert "apt-get install python3.11-venv" in said


def test_with_an_old_python_it_says_what_to_install(machine: Machine) -> None:
    (machine.state / "old").touch()
    said = machine.make(fails=True)
    assert "version 3.9" in said
    assert "Python 3.11 or newer" in said
    assert "apt-get install python3 python3-venv" in said
    assert "brew install" in said


def test_a_newer_python_beside_an_old_one_is_found(machine: Machine, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    shutil.copy(programs / "python3", programs / "python3.12")
    (programs / "python3").write_text("#!/bin/sh\nexit 1\n")
    machine.make()
    assert machine.installs == ["requirements.txt"]


def test_with_no_python_it_says_so(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "bin" / "python3").unlink()
    assert "No usable Python" in machine.make(fails=True)


def test_the_scripts_can_be_run() -> None:
    for name in ("environment", "packages", "run", "lock"):
        assert os.access(ROOT / ".ci" / name, os.X_OK), name
        subprocess.run(["bash", "-n", str(ROOT / ".ci" / name)], check=True)
