"""What comes out of a sound file: everything resolved, secrets hidden, unset kept unset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.wire.call import Timeouts
from gateway.settings.load import Overrides
from gateway.settings.snapshot import Limits, Snapshot

Loaded = Callable[..., Snapshot]


def test_the_shape_that_others_rely_on(loaded: Loaded) -> None:
    snapshot = loaded(
        """
[providers.anthropic]
dialect = "anthropic-messages"
base_url = "https://api.anthropic.com/"
api_key = "${OPENAI_API_KEY}"
[models."team/smart-4.1:x"]
strategy = "priority"
targets = [
  { provider = "anthropic", model = "claude-sonnet-4-6" },
  { provider = "openai", model = "gpt-5.2", weight = 2.5 },
]
"""
    )
    alias = snapshot.aliases["team/smart-4.1:x"]
    assert [t.deployment.name for t in alias.targets] == [
        "anthropic/claude-sonnet-4-6",
        "openai/gpt-5.2",
    ]
    assert alias.targets[1].weight == 2.5
    assert snapshot.providers["anthropic"].base_url == "https://api.anthropic.com"
    assert alias.targets[0].deployment.provider == snapshot.providers["anthropic"]


def test_secrets_come_from_elsewhere_and_show_nowhere(
    loaded: Loaded, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("from-a-file\n")
    snapshot = loaded("""
[providers.p]
dialect = "openai-chat"
base_url = "https://x/v1"
api_key = "file:secret"
proxy = "http://u:${HEADER}@proxy:3128"
headers = { X-Team = "a", X-Token = "Bearer ${HEADER}" }
""")
    provider = snapshot.providers["p"]
    assert provider.api_key is not None
    assert provider.api_key.reveal() == "from-a-file"
    assert provider.headers == {"X-Team": "a", "X-Token": "Bearer hush"}
    assert provider.proxy == "http://u:hush@proxy:3128"
    shown = repr(snapshot) + str(snapshot)
    for secret in ("from-a-file", "hush", *environment.values()):
        assert secret not in shown


class TestTimeouts:
    """Alias over provider over what the facts say over the defaults."""

    def test_a_model_that_reasons_may_be_silent_longer(self, loaded: Loaded) -> None:
        snapshot = loaded("""
[models.plain]
targets = [{ provider = "openai", model = "gpt-4.1" }]
[models.unknown]
targets = [{ provider = "openai", model = "in-house" }]
""")
        smart, plain, unknown = (
            snapshot.aliases[n].targets[0].timeouts for n in ("smart", "plain", "unknown")
        )
        assert smart == Timeouts(5, 300, 300, 600)
        assert plain == Timeouts(5, 120, 120, 600)
        assert unknown == Timeouts(5, 120, 120, 600)

    def test_each_layer_overrides_only_what_it_names(self, loaded: Loaded, base: str) -> None:
        base = base.replace(
            'prices = "none"', 'prices = "none"\ntimeouts = { connect = 1, total = 50 }'
        )
        snapshot = loaded(
            """
[models.m]
timeouts = { total = 40, first_event = 7 }
targets = [
  { provider = "openai", model = "gpt-5.2" },
  { provider = "openai", model = "gpt-5.2", timeouts = { first_event = 8 } },
]
""",
            base=base,
        )
        first, second = (t.timeouts for t in snapshot.aliases["m"].targets)
        assert first == Timeouts(1, 7, 300, 40)
        assert second == Timeouts(1, 8, 300, 40)
        assert snapshot.providers["openai"].timeouts == Timeouts(1, 120, 120, 50)


class TestLimits:
    """Absent is unlimited, zero is a limit (fault kind K05)."""

    def test_absent_and_zero_are_two_things(self, loaded: Loaded) -> None:
        snapshot = loaded("limits = { rpm = 0, usd_per_day = 0, usd_total = 0.1 }\n")
        assert snapshot.keys[0].limits == Limits(rpm=0, nano_per_day=0, nano_total=100_000_000)

    def test_a_key_inherits_the_default_limits_that_it_does_not_name(self, loaded: Loaded) -> None:
        snapshot = loaded(
            "limits = { rpm = 0 }\n[limits.default]\nrpm = 60\ntpm = 1000\nusd_per_month = 20\n"
        )
        assert snapshot.default_limits == Limits(rpm=60, tpm=1000, nano_per_month=20_000_000_000)
        assert snapshot.keys[0].limits == Limits(rpm=0, tpm=1000, nano_per_month=20_000_000_000)

    @pytest.mark.parametrize(
        ("usd", "nano"),
        [("0.1", 100_000_000), ("0.000000001", 1), ("1e-3", 1_000_000), ("20", 20_000_000_000)],
    )
    def test_money_never_passes_through_binary_floating_point(
        self, loaded: Loaded, usd: str, nano: int
    ) -> None:
        snapshot = loaded(f"limits = {{ usd_per_day = {usd} }}\n")
        assert snapshot.keys[0].limits.nano_per_day == nano


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("2027-01-01", 1798761600), ("2027-01-01T01:00:00+01:00", 1798761600)],
)
def test_a_key_expires_at_a_date(loaded: Loaded, written: str, seconds: float) -> None:
    assert loaded(f"expires = {written}\n").keys[0].expires == seconds


class TestHash:
    """It changes with what was configured, not with how it was written or with secrets."""

    def test_comments_and_order_do_not_matter(self, loaded: Loaded) -> None:
        text = "[server]\nport = 1\nmax_n = 2\n"
        other = "# a comment\n[server]\nmax_n = 2\nport = 1\n"
        assert loaded(text).hash == loaded(other).hash

    def test_values_matter(self, loaded: Loaded) -> None:
        assert loaded("[server]\nport = 1\n").hash != loaded("[server]\nport = 2\n").hash

    def test_secrets_do_not(self, loaded: Loaded, environment: dict[str, str]) -> None:
        assert loaded().hash == loaded(environment={**environment, "GATEWAY_KEY": "new"}).hash

    def test_files_of_the_folders_do(self, loaded: Loaded, tmp_path: Path) -> None:
        prompt = tmp_path / "prompts" / "support.md"
        prompt.parent.mkdir()
        prompt.write_text("one")
        before = loaded('[prompts]\ndir = "prompts"\n').hash
        prompt.write_text("two")
        assert loaded('[prompts]\ndir = "prompts"\n').hash != before

    def test_facts_do(self, loaded: Loaded, tmp_path: Path) -> None:
        before = loaded().hash
        (tmp_path / "models.toml").write_text('[[model]]\nmatch = ["x"]\nwindow = 1\n')
        assert loaded().hash != before


class TestSimulator:
    """A provider without an address of its own gets the in-process simulator's."""

    @pytest.mark.parametrize(
        ("dialect", "url"),
        [
            ("openai-responses", "http://127.0.0.1:4321/v1"),
            ("openai-chat", "http://127.0.0.1:4321/v1"),
            ("anthropic-messages", "http://127.0.0.1:4321"),
        ],
    )
    def test_the_address_by_dialect(self, loaded: Loaded, dialect: str, url: str) -> None:
        text = f'[providers.sim]\ndialect = "{dialect}"\nsimulator = true\n'
        snapshot = loaded(text, overrides=Overrides(simulator_url="http://127.0.0.1:4321/"))
        assert snapshot.providers["sim"].base_url == url


def test_a_relative_database_lies_beside_the_file(loaded: Loaded, tmp_path: Path) -> None:
    assert loaded().store.url == f"sqlite:///{tmp_path}/gateway.db"
    other = loaded(overrides=Overrides(store_dir="/elsewhere"))
    assert other.store.url == "sqlite:////elsewhere/gateway.db"
    absolute = loaded('[store]\nurl = "sqlite:////var/lib/g.db"\n')
    assert absolute.store.url == "sqlite:////var/lib/g.db"


def test_the_command_line_overrides_the_file(loaded: Loaded) -> None:
    snapshot = loaded("[server]\nport = 1\n", overrides=Overrides(host="::1", port=0))
    assert (snapshot.server.host, snapshot.server.port) == ("::1", 0)


def test_tables_of_other_rooms_arrive_whole(loaded: Loaded) -> None:
    snapshot = loaded("""
[runs]
max_concurrent = 3
[tools.crm]
kind = "http"
url = "https://crm.example.com/${HEADER}/{id}"
headers = { Authorization = "Bearer ${HEADER}" }
[mcp.files]
command = "mcp-files"
env = { TOKEN = "${HEADER}" }
[agents.helper]
model = "smart"
instructions = "Say ${NOT_A_REFERENCE}."
tools = ["crm"]
[workflows.two]
nodes = { a = { kind = "call", model = "smart" } }
""")
    assert snapshot.extra["runs"]["max_concurrent"] == 3
    assert snapshot.extra["tools"]["crm"]["url"] == "https://crm.example.com/hush/{id}"
    assert snapshot.extra["tools"]["crm"]["headers"] == {"Authorization": "Bearer hush"}
    assert snapshot.extra["mcp"]["files"]["env"] == {"TOKEN": "hush"}
    assert snapshot.extra["agents"]["helper"]["instructions"] == "Say ${NOT_A_REFERENCE}."
    assert snapshot.extra["workflows"]["two"]["nodes"]["a"]["kind"] == "call"
