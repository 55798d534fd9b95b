"""Tools from a configuration: what is refused, what is offered, what a reload changes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from gateway.policy.auth import Principal
from gateway.settings.load import load
from gateway.settings.snapshot import Snapshot
from gateway.tools import configured
from gateway.tools.base import NO_ARGUMENTS, Registry, ToolContext, ToolSpec
from gateway.tools.registry import Toolbox, allowed, check, secrets

CONTEXT = ToolContext("r:c", "r", "c", "default", deadline=0.0)
PROGRAM = Path(__file__).parent / "mcp" / "program.py"
BASE = """
[providers.p]
dialect = "openai-chat"
base_url = "https://p.example/v1"
api_key = "${KEY}"
[models.m]
targets = [{ provider = "p", model = "x" }]
"""
Read = Callable[[str], Snapshot]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The snapshot of the tables that a test adds."""

    def read(tables: str) -> Snapshot:
        path = tmp_path / "gateway.toml"
        path.write_text(BASE + textwrap.dedent(tables))
        return load(path, {"KEY": "provider-key", "TOKEN": "tool-token"})

    return read


@pytest.fixture(autouse=True)
def clean_modules(tmp_path: Path) -> Iterator[None]:
    """Modules that a test writes are not there for the next."""
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).parent == tmp_path:
            del sys.modules[name]
    sys.path[:] = path


def problems(snapshot: Snapshot) -> dict[str, str]:
    return {problem.where: problem.message for problem in check(snapshot)}


HTTP = """
[tools.find]
kind = "http"
description = "Finds."
url = "https://crm.example.com/c/{number}?limit={limit}"
headers = { Authorization = "Bearer ${TOKEN}" }
timeout = 5
idempotent = true
policy = "approve"
[tools.find.parameters]
type = "object"
required = ["number"]
properties.number.type = "string"
properties.limit = { type = "number", minimum = 0.5, maximum = 9 }
"""


def test_an_http_tool(read: Read) -> None:
    snapshot = read(HTTP)
    assert check(snapshot) == []
    toolbox = Toolbox()
    toolbox.use(snapshot)
    assert toolbox.registry.names() == ["time", "calculator", "find"]
    (spec,) = toolbox.registry.specs(["find"])
    assert (spec.kind, spec.timeout, spec.idempotent, spec.read_only) == ("http", 5.0, True, False)
    assert (spec.policy, spec.output_cap) == ("approve", 50_000)
    assert spec.parameters["properties"]["limit"] == {
        "type": "number", "minimum": 0.5, "maximum": 9,
    }  # fmt: skip
    assert len(spec.schema_hash) == 64


def test_secrets_of_headers_and_programs_are_known_to_the_log(read: Read) -> None:
    found = secrets(
        read(HTTP + '[mcp.m]\ncommand = "sh"\nenv = { API_TOKEN = "${TOKEN}", LANG = "C" }')
    )
    assert found == ["Bearer tool-token", "tool-token", "tool-token", "tool-token"]


async def test_a_python_function_beside_the_configuration(read: Read, tmp_path: Path) -> None:
    (tmp_path / "own_tools.py").write_text(
        "from gateway.tools.function import tool\n"
        "class Group:\n"
        "    @staticmethod\n"
        "    @tool(read_only=True, timeout=7, output_cap=99)\n"
        "    def greet(name: str) -> str:\n"
        "        'Greets.'\n"
        "        return 'hello ' + name\n"
    )
    snapshot = read(
        """
        [tools.greet]
        kind = "python"
        function = "own_tools:Group.greet"
        timeout = 3
        policy = "deny"
        """
    )
    assert check(snapshot) == []
    toolbox = Toolbox()
    toolbox.use(snapshot)
    tool = toolbox.registry.get("greet")
    assert tool is not None
    spec = tool.spec
    assert (spec.description, spec.timeout, spec.output_cap) == ("Greets.", 3.0, 99)
    assert (spec.read_only, spec.policy) == (True, "deny")
    assert (await tool.call({"name": "you"}, CONTEXT)).content == (Text("hello you"),)


@pytest.fixture
def installed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers ``textwrap.dedent``, whose parameter has no type hint, as ``broken``,
    and a good one as ``length``."""
    points = [
        EntryPoint("length", "tools_of_a_package:length", configured.GROUP),
        EntryPoint("broken", "tools_of_a_package:missing", configured.GROUP),
    ]
    monkeypatch.setattr(configured, "entry_points", lambda group: points)


def test_an_installed_package_offers_tools(
    read: Read, tmp_path: Path, installed_point: None
) -> None:
    (tmp_path / "tools_of_a_package.py").write_text(
        "def length(text: str) -> int: return len(text)"
    )
    snapshot = read('[tools.length]\nkind = "python"\ndescription = "Counts."')
    assert list(problems(snapshot)) == ["tools.broken"]
    assert "no attribute 'missing'" in problems(snapshot)["tools.broken"]
    toolbox = Toolbox()
    toolbox.use(snapshot)
    (spec,) = toolbox.registry.specs(["length"])
    assert spec.description == "Counts."
    assert toolbox.registry.get("broken") is None


def test_http_get_is_off_until_it_is_configured(read: Read) -> None:
    toolbox = Toolbox()
    toolbox.use(read(""))
    assert toolbox.registry.get("http_get") is None
    snapshot = read('[tools.http_get]\nkind = "builtin"\nallow_hosts = ["*.example.com"]')
    assert check(snapshot) == []
    toolbox.use(snapshot)
    (spec,) = toolbox.registry.specs(["http_get"])
    assert spec.read_only
    assert spec.parameters["required"] == ["url"]


def http(**changes: str) -> str:
    """The table of an HTTP tool, with some lines changed."""
    lines = {
        "kind": '"http"',
        "description": '"Finds."',
        "url": '"https://crm.example.com/{n}"',
        "parameters": '{ type = "object", properties = { n = { type = "string" } } }',
        **changes,
    }
    return "[tools.x]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items() if value)


@pytest.mark.parametrize(
    ("tables", "where", "said"),
    [
        ('[tools.x]\nkind = "python"', "tools.x", "no installed package offers 'x'"),
        ('[tools.x]\nkind = "python"\nfunction = "nope_nope:f"', "tools.x", "No module named"),
        ('[tools.x]\nkind = "python"\nfunction = "json:nope"', "tools.x", "no attribute 'nope'"),
        ('[tools.x]\nkind = "python"\nfunction = "json.dumps"', "tools.x", "module:function"),
        ('[tools.x]\nkind = "python"\nfunction = "json:dumps"', "tools.x", "has no type hint"),
        ('[tools.x]\nkind = "python"\nfunction = "sys:path"', "tools.x", "can't be called"),
        ('[tools.x]\nkind = "python"\nurl = "https://a.b/"', "tools.x", "has url"),
        (http(url=""), "tools.x", "needs url"),
        (http(description=""), "tools.x", "needs a description"),
        (http(function='"json:dumps"'), "tools.x", "has function"),
        (http(url='"https://{n}.example.com/"'), "tools.x", "argument in its host"),
        (http(url='"https://crm.example.com/{m}"'), "tools.x", "parameters do not list"),
        (http(url='"https://crm.example.com/"'), "tools.x", "n is used nowhere"),
        (http(url='"https://0x7f.1/{n}"'), "tools.x", "url: "),
        (http(url='"https://u:p@crm.example.com/{n}"'), "tools.x", "url: "),
        (http(allow_hosts='["other.example.com"]'), "tools.x", "not in allow_hosts"),
        (http(allow_hosts='["a b"]'), "tools.x", "allow_hosts: "),
        (http(allow_private='["crm"]'), "tools.x", "no address and no network"),
        (http(headers='{ Host = "x" }'), "tools.x", "'Host' is no header"),
        (http(headers='{ "a b" = "x" }'), "tools.x", "'a b' is no header"),
        (http(headers='{ A = "{" }'), "tools.x", "headers: has a brace"),
        (http(body='"a {n}"'), "tools.x", "body: must be a table"),
        (http(ca_file='"none.pem"'), "tools.x", "which is no file"),
        (http(ca_file='"gateway.toml"'), "tools.x", "no certificate"),
        (http(parameters='{ type = "string" }'), "tools.x", 'type = "object"'),
        (http(parameters='{ type = "object", properties = 5 }'), "tools.x", "parameters: "),
        (http(parameters='{ type = "object", "$ref" = "https://x.example/s" }'), "tools.x",
         "parameters: "),
        ('[tools.x]\nkind = "builtin"', "tools.x", "'x' is no tool that can be switched on"),
        ('[tools.http_get]\nkind = "builtin"', "tools.http_get", "needs allow_hosts"),
        ('[tools.time]\nkind = "builtin"', "tools.time", "always there"),
        ('[tools."a.b"]\nkind = "python"', "tools.a.b", "letters, digits"),
        ('[tools.transfer_to_x]\nkind = "python"', "tools.transfer_to_x", "hand over"),
        (http().replace("tools.x", "tools.m__x") + '\n[mcp.m]\ncommand = "sh"', "tools.m__x",
         "must not begin with m__"),
        ("[mcp.m]", "mcp.m", "either url or command"),
        ('[mcp.m]\nurl = "https://x.example/"\ncommand = "sh"', "mcp.m", "either url or command"),
        ('[mcp."a__b"]\ncommand = "sh"', "mcp.a__b", "without __"),
        ('[mcp.m]\ncommand = "no-such-program"', "mcp.m", "can be found"),
        ('[mcp.m]\ncommand = "sh"\nheaders = { A = "b" }', "mcp.m", "has headers"),
        ('[mcp.m]\nurl = "https://x.example/mcp"\nargs = ["a"]', "mcp.m", "has args"),
        ('[mcp.m]\nurl = "http://127.1/mcp"', "mcp.m", "url: "),
        ('[mcp.m]\nurl = "https://x.example/mcp"\nheaders = { Mcp-Session-Id = "1" }', "mcp.m",
         "belongs to the protocol"),
        ('[mcp.m]\ncommand = "sh"\npins = { a = "1" }', "mcp.m", "64 hexadecimal digits"),
        ('[mcp.m]\ncommand = "sh"\ntools = ["a"]\nidempotent = ["b"]', "mcp.m", "'b' is in"),
    ],
)  # fmt: skip
def test_what_can_t_work_is_told_before_the_port_opens(
    read: Read, tables: str, where: str, said: str
) -> None:
    found = problems(read(tables))
    assert list(found) == [where]
    assert said in found[where]


def test_one_fault_hides_no_other(read: Read) -> None:
    found = problems(read('[tools.a]\nkind = "python"\n[tools.b]\nkind = "http"\n[mcp.c]'))
    assert list(found) == ["tools.a", "tools.b", "mcp.c"]


def test_braces_of_a_secret_are_not_shown(read: Read, tmp_path: Path) -> None:
    snapshot = read(HTTP)
    snapshot.extra["tools"]["find"]["headers"] = {"Authorization": "Bearer abc{hunter2}"}
    (message,) = problems(snapshot).values()
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("tools", "name", "may"),
    [
        (None, "anything", True),
        ([], "time", False),
        (["time"], "time", True),
        (["time"], "time2", False),
        (["files__*"], "files__read", True),
        (["files__*"], "filesx", False),
        (["*"], "anything", True),
    ],
)
def test_what_a_key_may_use(tools: list[str] | None, name: str, may: bool) -> None:
    words = None if tools is None else frozenset(tools)
    assert allowed(Principal("k", "k", "p", "caller", tools=words), name) is may


class Fixed:
    """A tool and a source of tools, for the registry alone."""

    prefix = "srv__"

    def __init__(self, *names: str) -> None:
        self.held = {name: Fixed.Tool(name) for name in names}
        self.waited = 0

    class Tool:
        def __init__(self, name: str) -> None:
            self.spec = ToolSpec(name)

        async def call(self, arguments: Any, context: Any) -> Any: ...

    def tools(self) -> Any:
        return self.held

    async def ready(self) -> None:
        self.waited += 1


async def test_the_registry_knows_tools_that_come_and_go() -> None:
    source = Fixed("srv__a", "srv__b")
    registry = Registry([Fixed.Tool("time")], [source])
    assert registry.names() == ["time", "srv__a", "srv__b"]
    assert [spec.name for spec in registry.specs(["srv__*", "time", "srv__a"])] == [
        "srv__a", "srv__b", "time",
    ]  # fmt: skip
    del source.held["srv__a"]
    assert registry.get("srv__a") is None
    with pytest.raises(Fault, match="Did you mean 'srv__b'"):
        registry.specs(["srv__c"])
    await registry.ready(["time"])
    assert source.waited == 0
    await registry.ready(["srv__b", "srv__*"])
    assert source.waited == 1


async def test_a_reload_keeps_what_did_not_change(read: Read, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    server = f'[mcp.srv]\ncommand = "{sys.executable}"\nargs = ["{PROGRAM}", "{effects}"]\n'
    async with asyncio.TaskGroup() as group:
        toolbox = Toolbox()
        toolbox.use(read(HTTP + server))
        toolbox.start(group)
        registry = toolbox.registry
        async with asyncio.timeout(30):
            await registry.ready(["srv__add"])
        find, add = registry.get("find"), registry.get("srv__add")
        assert add is not None
        assert (await add.call({"a": 1, "b": 2}, CONTEXT)).content == (Text("3"),)

        more = '[tools.http_get]\nkind="builtin"\nallow_hosts=["*"]'
        assert toolbox.use(read(HTTP + server + more)) == []
        assert toolbox.registry is registry
        assert registry.get("find") is find
        assert registry.get("srv__add") is add
        assert registry.get("http_get") is not None
        assert effects.read_text() == "started\n", "the same program serves on"

        gone = toolbox.use(read(HTTP.replace("Finds.", "Finds more.")))
        assert [one.busy for one in gone] == [False, False], "of the tools that went"
        for one in gone:
            await one.close()
        assert registry.get("find") is not find
        assert registry.get("srv__add") is None

        assert len(toolbox.use(read(server))) == 1, "what was kept is told only once"
        async with asyncio.timeout(30):
            await registry.ready(["srv__add"])
        assert registry.specs(["srv__add"])
        assert effects.read_text() == "started\nstarted\n"
        await toolbox.close()


def test_the_protocol_s_package_is_not_imported_for_nothing() -> None:
    """It takes half a second, which only who has a server configured should pay."""
    script = (
        "import sys, gateway.tools.registry\n"
        "heavy = {'mcp', 'mcp_types', 'httpx2'} & {name.split('.')[0] for name in sys.modules}\n"
        "sys.exit(len(heavy))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", script], cwd=root, check=False).returncode == 0


def test_a_tool_without_parameters_takes_none(read: Read) -> None:
    toolbox = Toolbox()
    toolbox.use(
        read('[tools.x]\nkind = "http"\ndescription = "D."\nurl = "https://crm.example.com/"')
    )
    assert toolbox.registry.specs(["x"])[0].parameters == NO_ARGUMENTS
