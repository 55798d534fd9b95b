"""What is wrong with a file is said all at once: file, line, key, nearest right word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings.load import Overrides, load
from gateway.settings.problems import ConfigError
from gateway.settings.snapshot import Snapshot

Problems = Callable[..., dict[str, str]]
Loaded = Callable[..., Snapshot]


def test_everything_is_found_in_one_go(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("""\
[server]
prot = 8080

[stroe]
url = "x"

[providers.openai]
dialect = "openai-respones"
base_url = "https://api.openai.com/v1"
api_key = "${OPENAI_API_KEY}"

[models."smart/4.1:x"]
targets = [
  { provider = "opnai", model = "gpt-5.2" },
  { provider = "openai", model = "gpt-5.2", wieght = 1 },
]

[[keys]]
name = "dev"
key = "sk-in-plain-sight"
limits = { rpm = -1 }

[[keys]]
name = "dev"
key = "demo"
models = ["smrt"]
""")
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    found = [(p.line, p.where, p.message) for p in caught.value.problems]
    assert [(line, where) for line, where, _ in found] == [
        (2, "server.prot"),
        (4, "stroe"),
        (8, "providers.openai.dialect"),
        (10, "providers.openai.api_key"),
        (14, 'models."smart/4.1:x".targets[0].provider'),
        (15, 'models."smart/4.1:x".targets[1].wieght'),
        (20, "keys[0].key"),
        (21, "keys[0].limits.rpm"),
        (24, "keys[1].name"),
        (26, "keys[1].models[0]"),
    ]
    words = " ".join(message for _, _, message in found)
    for near in ("'port'", "'store'", "'openai-responses'", "'openai'", "'weight'"):
        assert f"did you mean {near}?" in words
    assert "OPENAI_API_KEY, which is not set" in words
    assert all(str(problem).startswith(f"{file}:") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("server.port = 65536", "server.port", "must be 65535 or less"),
        ("server.port = '80'", "server.port", "must be a whole number, without quotes"),
        ("server.port = true", "server.port", "must be a whole number"),
        ("server.max_body_mb = 0", "server.max_body_mb", "must be more than 0"),
        ("server.drain_seconds = nan", "server.drain_seconds", "finite"),
        ("server.root_path = 'api'", "server.root_path", "not allowed"),
        ("server.cors = ['example.com']", "server.cors[0]", "an origin without a path"),
        ("server.cors = ['https://a.b/c']", "server.cors[0]", "an origin without a path"),
        ("server.forwarded_allow_ips = ['10/8x']", "server.forwarded_allow_ips[0]", "IP address"),
        ("store.url = 'mysql://x'", "store.url", "must begin with"),
        ("store.url = 'sqlite:///'", "store.url", "must name a file"),
        ("store.url = 'sqlite:///:memory:'", "store.url", "must name a file"),
        ("store.retention.requests = -1", "store.retention.requests", "0 or more"),
        ("observe.log_level = 'warn'", "observe.log_level", "did you mean 'warning'?"),
        ("limits.default.rpm = -1", "limits.default.rpm", "must be 0 or more"),
        ("limits.default.usd_per_day = '5'", "limits.default.usd_per_day", "without quotes"),
        (
            "limits.default.usd_per_day = 1e-30",
            "limits.default.usd_per_day",
            "must be 0, or from 0.000000001 to 1000000000 US dollars",
        ),
        ("prompts.dir = 'nowhere'", "prompts.dir", "which is no folder"),
        ("prompts.dir = '${HEADER}'", "prompts.dir", "not expanded here"),
        ("facts.'opnai/gpt-5.2'.window = 1", 'facts."opnai/gpt-5.2"', "did you mean 'openai'?"),
        ("facts.gpt.window = 1", "facts.gpt", 'must be named "provider/model"'),
        (
            "facts.'openai/gpt-5.2'.has = ['tolos']",
            'facts."openai/gpt-5.2".has',
            "did you mean 'tools'?",
        ),
        (
            "facts.'openai/gpt-5.2'.refuses = ['temprature']",
            'facts."openai/gpt-5.2".refuses',
            "did you mean 'temperature'?",
        ),
        ("agents.a.model = 'smrt'", "agents.a.model", "did you mean 'smart'?"),
        ("workflows.w.nodes = {}", "workflows.w.nodes", "at least 1"),
    ],
)
def test_a_single_fault(problems: Problems, base: str, text: str, where: str, message: str) -> None:
    found = problems(base=f"{text}\n{base}")
    assert list(found) == [where]
    assert message in found[where]


@pytest.mark.parametrize(
    ("line", "where", "message"),
    [
        ("base_url = 'ftp://x'", "base_url", "must be an http:// or https:// URL"),
        ("base_url = 'https://'", "base_url", "must be an http:// or https:// URL"),
        ("base_url = 'https://u:p@x'", "base_url", "must not hold a user or password"),
        ("base_url = 'https://x?k=1'", "base_url", "must not have a ? or # part"),
        ("base_url = 'https://x:99999'", "base_url", "is no URL"),
        ("base_url = 'https://${HOST}'", "base_url", "HOST, which is not set"),
        ("base_url = 'https://${}'", "base_url", "no reference"),
        ("", None, "needs a base_url"),
        ("simulator = true\nbase_url = 'https://x'", "simulator", "can't stand beside base_url"),
        ("base_url = 'https://x'\nca_file = 'no.pem'", "ca_file", "which is no file"),
        ("base_url = 'https://x'\nheaders = { 'a b' = '1' }", 'headers."a b"', "no header"),
        ("base_url = 'https://x'\nheaders = { Host = '1' }", "headers.Host", "no header"),
        ("base_url = 'https://x'\ntimeouts.total = 0", "timeouts.total", "more than 0"),
        ("base_url = 'https://x'\nanthropic_version = 'x'", "anthropic_version", "not allowed"),
        ("base_url = 'https://x'\napi_key = 'sk-x'", "api_key", "holds the secret itself"),
        ("base_url = 'https://x'\napi_key = '${EMPTY}'", "api_key", "which is empty"),
        ("base_url = 'https://x'\napi_key = 'file:gone'", "api_key", "can't be read"),
        ("base_url = 'https://x'\napi_key = 'a${HEADER}'", "api_key", "holds the secret itself"),
    ],
)
def test_a_provider_fault(problems: Problems, line: str, where: str | None, message: str) -> None:
    text = f"[providers.p]\ndialect = 'openai-chat'\n{line}\n"
    found = problems(text, environment={"EMPTY": "", "OPENAI_API_KEY": "a", "GATEWAY_KEY": "b"})
    assert list(found) == [f"providers.p.{where}" if where else "providers.p"]
    assert message in next(iter(found.values()))


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("targets = []", "models.m.targets", "at least 1"),
        ("", "models.m.targets", "is missing"),
        ("strategy = 'weighted'\ntargets = [{provider='openai',model='m',weight=0}]",
         "models.m.targets", "needs a weight above 0"),
        ("targets = [{provider='openai',model='m',weight=-1}]",
         "models.m.targets[0].weight", "0 or more"),
        ("targets = [{provider='openai',model=''}]", "models.m.targets[0].model", "not be empty"),
        ("retries = -1\ntargets = [{provider='openai',model='m'}]", "models.m.retries", "0 or"),
        ("max_attempts = 0\ntargets = [{provider='openai',model='m'}]",
         "models.m.max_attempts", "1 or more"),
        ("breaker.rate = 1.5\ntargets = [{provider='openai',model='m'}]",
         "models.m.breaker.rate", "1 or less"),
        ("strategy = 'random'\ntargets = [{provider='openai',model='m'}]",
         "models.m.strategy", "priority, weighted"),
    ],
)  # fmt: skip
def test_an_alias_fault(problems: Problems, text: str, where: str, message: str) -> None:
    found = problems(f"[models.m]\n{text}\n")
    assert list(found) == [where]
    assert message in found[where]


def test_an_embedding_alias_needs_a_dialect_that_has_embeddings(problems: Problems) -> None:
    found = problems("""
[providers.claude]
dialect = "anthropic-messages"
base_url = "https://api.anthropic.com"
[models.embed]
kind = "embedding"
targets = [{ provider = "claude", model = "x" }]
""")
    assert "no embeddings" in found["models.embed.targets[0].provider"]


@pytest.mark.parametrize("name", ["agent:x", "workflow:x"])
def test_names_of_runs_are_reserved(problems: Problems, name: str) -> None:
    found = problems(f'[models."{name}"]\ntargets = [{{ provider = "openai", model = "m" }}]\n')
    assert "agent: or workflow:" in found[f'models."{name}"']


@pytest.mark.parametrize("name", ["", "a b", "a\\tb", "\\u0000"])
def test_names_with_blanks_or_control_characters_are_refused(problems: Problems, name: str) -> None:
    assert problems(f'[models."{name}"]\ntargets = [{{ provider = "openai", model = "m" }}]\n')


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("[server]\nport = = 1\n", 2, "Texts stand in quotes"),
        ("[server]\nhost = 127.0.0.1\n", 2, "Texts stand in quotes"),
        ("[server]\nport = 1\nport = 2", 3, "The same key stands twice"),
        ("[server]\n[store]\n[server]\n", 3, "The same table stands twice"),
        ("[server]\nhost = 'local", 2, ""),
    ],
)
def test_no_toml_says_the_line(tmp_path: Path, text: str, line: int, advice: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.problems[0].line == line
    assert "is no valid TOML: " in str(caught.value)
    assert advice in str(caught.value)
    assert "end of document)" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_an_unreadable_file_is_a_config_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "gateway.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"gateway\.toml"):
        load(file)


class TestWhoMayListen:
    """A gateway that others can reach needs a key that others don't know."""

    def test_no_key_off_loopback(self, problems: Problems, base: str) -> None:
        found = problems('[server]\nhost = "0.0.0.0"\n', base=base.partition("[[keys]]")[0])
        assert "no key is defined" in found["server.host"]

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    def test_no_key_on_loopback(self, loaded: Loaded, base: str, host: str) -> None:
        assert loaded(f'[server]\nhost = "{host}"\n', base=base.partition("[[keys]]")[0]).keys == ()

    @pytest.mark.parametrize("key", ["demo", "${DEMO}"])
    def test_the_demo_key_off_loopback(self, problems: Problems, key: str) -> None:
        text = f'[[keys]]\nname = "d"\nkey = "{key}"\n[server]\nhost = "10.0.0.1"\n'
        environment = {"DEMO": "demo", "OPENAI_API_KEY": "a", "GATEWAY_KEY": "b"}
        found = problems(text, environment=environment)
        assert "everybody knows" in found["keys[1].key"]

    def test_the_command_line_counts_too(self, problems: Problems) -> None:
        text = '[[keys]]\nname = "d"\nkey = "demo"\n'
        found = problems(text, overrides=Overrides(host="0.0.0.0"))
        assert "keys[1].key" in found


class TestPostgres:
    """Replicas must agree on the pepper, and a password is a secret like any other."""

    def test_pepper_is_required(self, problems: Problems) -> None:
        found = problems('[store]\nurl = "postgresql://gateway@db/gateway"\n')
        assert "required with PostgreSQL" in found["server.pepper"]

    def test_a_password_in_plain_sight(self, problems: Problems) -> None:
        text = '[store]\nurl = "postgresql://u:pw@db/g"\n[server]\npepper = "${HEADER}"\n'
        assert "holds the password itself" in problems(text)["store.url"]

    def test_a_password_by_reference(self, loaded: Loaded) -> None:
        text = '[store]\nurl = "postgresql://u:${HEADER}@db/g"\n[server]\npepper = "${HEADER}"\n'
        snapshot = loaded(text)
        assert snapshot.store.url == "postgresql://u:hush@db/g"
        assert "hush" not in repr(snapshot)


def test_a_fault_in_a_facts_file_names_that_file(loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('[[model]]\nmatch = ["x"]\nwindw = 1\n')
    with pytest.raises(ConfigError) as caught:
        loaded()
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / "models.toml"), 3)
    assert "did you mean 'window'?" in problem.message
