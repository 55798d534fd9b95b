"""What is known of models: the shipped rows, through the one place that applies them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.canonical.facts import Facts, Rate, constrain
from adapters.canonical.request import Request, Sampling
from gateway.settings.problems import ConfigError
from gateway.settings.snapshot import Snapshot

Loaded = Callable[..., Snapshot]
Known = Callable[..., Facts]

URLS = {
    "openai-responses": "https://api.openai.com/v1",
    "openai-chat": "https://api.openai.com/v1",
    "anthropic-messages": "https://api.anthropic.com",
}
CLAUDE = "anthropic-messages"
RESPONSES = "openai-responses"


@pytest.fixture
def known(loaded: Loaded) -> Known:
    """The facts of a model at a provider of a dialect."""

    def run(
        model: str, dialect: str = RESPONSES, text: str = "", url: str = "", **more: str
    ) -> Facts:
        extra = "".join(f'{name} = "{value}"\n' for name, value in more.items())
        snapshot = loaded(f"""
[providers.p]
dialect = "{dialect}"
base_url = "{url or URLS[dialect]}"
{extra}
[models.m]
targets = [{{ provider = "p", model = "{model}" }}]
{text}
""")
        return snapshot.aliases["m"].targets[0].deployment.facts

    return run


EVERYTHING = Sampling(
    max_output_tokens=1, temperature=1.7, top_p=0.5, top_k=5, stop=("x",), seed=1,
    frequency_penalty=0.1, presence_penalty=0.1, logit_bias={"1": 1.0}, logprobs=True,
    top_logprobs=2,
)  # fmt: skip


def fitted(facts: Facts) -> tuple[Sampling, set[str], tuple[str, ...]]:
    """What becomes of a request that sets everything."""
    request = Request("m", (), "openai-chat", sampling=EVERYTHING)
    found = constrain(request, facts)
    return found.request.sampling, set(found.dropped), found.adjusted


@pytest.mark.parametrize(
    "model",
    ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5.2-2025-12-11", "gpt-5.6-sol", "gpt-6-astra"],
)
def test_openai_models_that_reason_sample_by_themselves(known: Known, model: str) -> None:
    sampling, dropped, adjusted = fitted(known(model))
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (None, None, None)
    assert {"temperature", "top_p", "top_k", "seed", "frequency_penalty"} <= dropped
    assert adjusted == ("max_output_tokens=1->16",)


def test_openai_models_that_do_not_reason_take_them(known: Known) -> None:
    sampling, dropped, _ = fitted(known("gpt-4.1", "openai-chat"))
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (1.7, 0.5, 1)
    assert dropped == {"top_k"}
    assert sampling.max_output_tokens == 1, "only the Responses API wants at least 16"


def test_the_chat_models_of_the_fifth_generation_do_not_reason(known: Known) -> None:
    facts = known("gpt-5-chat-latest")
    assert not facts.can("reasoning")
    assert fitted(facts)[0].temperature == 1.7


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("claude-3-5-sonnet-20241022", ("temperature", "top_p", "top_k")),
        ("claude-sonnet-4-20250514", ("temperature", "top_p", "top_k")),
        ("claude-opus-4-1-20250805", ("temperature", "top_k")),
        ("claude-haiku-4-5-20251001", ("temperature", "top_k")),
        ("claude-sonnet-4-6", ("temperature", "top_k")),
        ("us.anthropic.claude-sonnet-4-6-v1:0", ("temperature", "top_k")),
        ("claude-opus-4-7", ()),
        ("claude-opus-4-8", ()),
        ("claude-sonnet-5", ()),
        ("claude-haiku-5-5", ()),
        ("claude-fable-5-2", ()),
        ("claude-of-tomorrow-7", ()),
    ],
)
def test_which_sampling_parameters_a_claude_takes(
    known: Known, model: str, kept: tuple[str, ...]
) -> None:
    sampling, dropped, adjusted = fitted(known(model, CLAUDE, prices="none"))
    left = [n for n in ("temperature", "top_p", "top_k") if getattr(sampling, n) is not None]
    assert tuple(left) == kept
    assert {"temperature", "top_p", "top_k"} - set(kept) <= dropped
    if "temperature" in kept:
        assert sampling.temperature == 1.0
        assert "temperature=1.7->1" in adjusted


@pytest.mark.parametrize("model", ["claude-3-5-sonnet-20241022", "claude-sonnet-4-6", "in-house"])
def test_the_api_version_of_october_2026_refuses_them_all(known: Known, model: str) -> None:
    facts = known(model, CLAUDE, anthropic_version="2026-10-21", prices="none")
    assert {"temperature", "top_p", "top_k"} <= fitted(facts)[1]
    older = known(model, CLAUDE, prices="none")
    assert "temperature" not in fitted(older)[1]


@pytest.mark.parametrize(
    ("model", "thinking", "prefill", "schema", "mid_system"),
    [
        ("claude-3-haiku-20240307", "none", True, False, False),
        ("claude-3-7-sonnet-latest", "manual", True, False, False),
        ("claude-opus-4-20250514", "manual", True, False, False),
        ("claude-sonnet-4-5", "manual", True, True, False),
        ("claude-opus-4-6", "adaptive", False, True, False),
        ("claude-opus-4-7", "adaptive", False, True, False),
        ("claude-opus-4-8", "adaptive", False, True, True),
        ("claude-sonnet-5-5", "adaptive", False, True, True),
    ],
)
def test_what_a_claude_can(
    known: Known, model: str, thinking: str, prefill: bool, schema: bool, mid_system: bool
) -> None:
    facts = known(model, CLAUDE, prices="none")
    assert facts.thinking == thinking
    assert facts.can("prefill") == prefill
    assert facts.can("json_schema") == schema
    assert facts.can("mid_system") == mid_system


def test_fine_tuned_models_take_no_limits_in_schemas(known: Known) -> None:
    assert not known("ft:gpt-4o-2024-08-06:acme::id", RESPONSES, prices="none").can("schema_limits")
    assert known("gpt-4o-2024-08-06", RESPONSES, prices="none").can("schema_limits")


@pytest.mark.parametrize(
    ("model", "dialect", "efforts"),
    [
        ("o3", RESPONSES, ("low", "medium", "high")),
        ("gpt-5-mini", RESPONSES, ("minimal", "low", "medium", "high")),
        ("gpt-5.1", RESPONSES, ("none", "low", "medium", "high")),
        ("gpt-5.2", RESPONSES, ("none", "low", "medium", "high", "xhigh")),
        ("gpt-5.6-luna", RESPONSES, ("none", "low", "medium", "high", "xhigh", "max")),
        ("gpt-6-astra", RESPONSES, ("low", "medium", "high", "xhigh", "max")),
        ("gpt-6-luna", RESPONSES, ("none", "low", "medium", "high", "xhigh", "max")),
        ("claude-opus-4-5", CLAUDE, ("low", "medium", "high")),
        ("claude-opus-4-6", CLAUDE, ("low", "medium", "high", "max")),
        ("claude-opus-5-5", CLAUDE, ("low", "medium", "high", "xhigh", "max")),
    ],
)
def test_efforts(known: Known, model: str, dialect: str, efforts: tuple[str, ...]) -> None:
    assert known(model, dialect, prices="none").efforts == efforts


def test_what_is_not_known_forbids_nothing(known: Known) -> None:
    facts = known("in-house", "openai-chat", url="http://10.0.0.1/v1")
    assert facts == Facts("in-house")
    assert fitted(facts)[1] == set()


class TestPrices:
    """Nano-dollars per million tokens, from the package's offline data."""

    def test_from_the_package(self, known: Known) -> None:
        facts = known("claude-sonnet-4-5", CLAUDE)
        assert facts.price is not None
        assert facts.price.input == Rate(3_000_000_000, ((200_000, 6_000_000_000),))
        assert facts.price.cache_write_1h is not None
        table, _, rates = facts.price.date.partition("; USD per million tokens: ")
        assert table.startswith("genai-prices ")
        assert rates.startswith("input 3 (6 above 200000), output 15 (22.5 above 200000), ")
        assert facts.window == 200_000

    def test_behind_a_proxy_the_maker_of_the_model_counts(self, known: Known) -> None:
        direct = known("gpt-5.2")
        behind = known("gpt-5.2", url="https://proxy.example.com/v1")
        assert behind.price == direct.price
        assert behind.window == direct.window

    def test_of_a_model_that_nobody_knows_there_is_none(self, known: Known) -> None:
        facts = known("in-house", "openai-chat", url="https://vllm.example.com/v1")
        assert facts.price is None
        assert facts.window is None

    def test_the_provider_may_say_whose(self, known: Known) -> None:
        url = "https://proxy.example.com/v1"
        assert known("deepseek-chat", "openai-chat", url=url, prices="none").price is None
        named = known("deepseek-chat", "openai-chat", url=url, prices="deepseek")
        assert named.price is not None

    def test_a_vendor_that_is_none(self, loaded: Loaded, base: str) -> None:
        with pytest.raises(ConfigError, match="did you mean 'openrouter'"):
            loaded(base=base.replace('"none"', '"openruter"'))

    def test_the_file_has_the_last_word(self, known: Known) -> None:
        text = """
[facts."p/gpt-5.2"]
window = 1000
has = ["audio"]
lacks = ["tools"]
accepts = ["temperature"]
efforts = ["low"]
one_of = [["temperature", "top_p"]]
[facts."p/gpt-5.2".price]
input = { usd = 0.000001, tiers = [{ above = 10, usd = 0.5 }, { above = 5, usd = 0.25 }] }
output = 0
"""
        facts = known("gpt-5.2", text=text)
        assert facts.window == 1000
        assert facts.can("audio")
        assert not facts.can("tools")
        assert "temperature" not in facts.refuses
        assert facts.efforts == ("low",)
        assert facts.one_of == (("temperature", "top_p"),)
        assert facts.price is not None
        assert facts.price.input == Rate(1_000, ((5, 250_000_000), (10, 500_000_000)))
        assert facts.price.output == Rate(0)
        assert facts.price.date == (
            "configuration; USD per million tokens: "
            "input 0.000001 (0.25 above 5) (0.5 above 10), output 0"
        )

    def test_of_one_target_alone(self, loaded: Loaded) -> None:
        snapshot = loaded("""
[models.m]
targets = [
  { provider = "openai", model = "gpt-5.2", facts = { window = 7 } },
  { provider = "openai", model = "gpt-5.2" },
]
""")
        windows = [t.deployment.facts.window for t in snapshot.aliases["m"].targets]
        assert windows == [7, None]


def test_a_table_beside_the_configuration_adds_rows(loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(
        '[[model]]\nmatch = ["gpt-5.2"]\nwindow = 42\n'
        '[[model]]\nmatch = ["gpt-*"]\nmin_output = 1\n'
    )
    facts = loaded().aliases["smart"].targets[0].deployment.facts
    assert (facts.window, facts.min_output, facts.max_output) == (42, 1, 128_000)


def test_the_demo_never_loads_the_price_package() -> None:
    """It costs a tenth of a second at every start."""
    code = (
        "import sys; from gateway.settings.load import load, shipped;"
        "load(shipped('demo.toml'), {}); print('genai_prices' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
