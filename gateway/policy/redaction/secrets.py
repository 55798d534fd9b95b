"""Keys and tokens of the kinds that are well known, by the marks that their makers gave them.

Each row is a beginning, what may follow, and nothing else; a token of one repeated character is
an example in a manual, not a key.
"""

from __future__ import annotations

import re

from gateway.policy.redaction.rule import Rule

_VARIETY = 6
"""Different characters that a real token has at least."""
_PEM_LENGTH = 16_384
"""Characters in which the end of a private key must follow its beginning."""

TOKENS: tuple[tuple[str, str], ...] = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek and whoever copied the form; our own sk-gw-
    ("sk-", r"[A-Za-z0-9_-]{20,}"),
    ("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS access key
    ("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS, temporary
    ("ABIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ghp_", r"[A-Za-z0-9]{30,}"),  # GitHub
    ("gho_", r"[A-Za-z0-9]{30,}"),
    ("ghu_", r"[A-Za-z0-9]{30,}"),
    ("ghs_", r"[A-Za-z0-9]{30,}"),
    ("ghr_", r"[A-Za-z0-9]{30,}"),
    ("github_pat_", r"[A-Za-z0-9_]{22,}"),
    ("glpat-", r"[A-Za-z0-9_.-]{20,}"),  # GitLab
    ("xoxb-", r"[A-Za-z0-9-]{10,}"),  # Slack
    ("xoxp-", r"[A-Za-z0-9-]{10,}"),
    ("xoxa-", r"[A-Za-z0-9-]{10,}"),
    ("xoxr-", r"[A-Za-z0-9-]{10,}"),
    ("xoxs-", r"[A-Za-z0-9-]{10,}"),
    ("xoxe", r"[.-][A-Za-z0-9.-]{10,}"),
    ("xapp-", r"[A-Za-z0-9-]{10,}"),
    ("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    ("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),  # Google API key
    ("ya29.", r"[A-Za-z0-9._-]{20,}"),  # Google OAuth
    ("GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    ("sk_live_", r"[A-Za-z0-9]{16,}"),  # Stripe
    ("sk_test_", r"[A-Za-z0-9]{16,}"),
    ("rk_live_", r"[A-Za-z0-9]{16,}"),
    ("rk_test_", r"[A-Za-z0-9]{16,}"),
    ("pk_live_", r"[A-Za-z0-9]{16,}"),
    ("whsec_", r"[A-Za-z0-9+/=]{20,}"),
    ("hf_", r"[A-Za-z0-9]{30,}"),  # Hugging Face
    ("gsk_", r"[A-Za-z0-9]{30,}"),  # Groq
    ("xai-", r"[A-Za-z0-9]{40,}"),
    ("pplx-", r"[A-Za-z0-9]{30,}"),  # Perplexity
    ("r8_", r"[A-Za-z0-9]{30,}"),  # Replicate
    ("npm_", r"[A-Za-z0-9]{30,}"),
    ("pypi-", r"[A-Za-z0-9_-]{40,}"),
    ("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),  # SendGrid
    ("dop_v1_", r"[a-f0-9]{40,}"),  # DigitalOcean
    ("shpat_", r"[a-fA-F0-9]{32}"),  # Shopify
    ("shpss_", r"[a-fA-F0-9]{32}"),
    ("hvs.", r"[A-Za-z0-9_-]{24,}"),  # HashiCorp Vault
    ("dapi", r"[a-f0-9]{32}(?![A-Za-z0-9])"),  # Databricks
    ("lin_api_", r"[A-Za-z0-9]{30,}"),  # Linear
    ("ntn_", r"[A-Za-z0-9]{40,}"),  # Notion
    ("secret_", r"[A-Za-z0-9]{40,}"),
    ("figd_", r"[A-Za-z0-9_-]{30,}"),  # Figma
    ("ATATT3x", r"[A-Za-z0-9_=-]{40,}"),  # Atlassian
    ("PMAK-", r"[a-f0-9-]{40,}"),  # Postman
    ("key-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),  # Mailgun
    ("LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),  # Alibaba Cloud
    ("AKID", r"[A-Za-z0-9]{28,40}(?![A-Za-z0-9])"),  # Tencent Cloud
)
"""A beginning and what follows it."""


def _real(token: str) -> bool:
    """Neither an example made of one character, nor words that happen to begin like a token."""
    return len(set(token)) >= _VARIETY and (token.isupper() or any(map(str.isdigit, token)))


def _token(beginning: str, rest: str) -> Rule:
    def proof(match: re.Match[str]) -> tuple[int, int] | None:
        return match.span() if _real(match.group(1)) else None

    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(beginning)}({rest})")
    return Rule("SECRET", pattern, proof, hints=(beginning,))


_JWT = re.compile(
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?"
)
_BEARER = re.compile(r"[Bb]earer\s{1,3}([A-Za-z0-9_~+/.=-]{20,}+)")
_LOGIN = re.compile(r"://[^\s/:@\"'<>]{0,64}+:([^\s/@\"'<>]{3,128}+)@")
_AWS_SECRET = re.compile(
    r"secret_?(?:access_?)?key[\"']?\s{0,3}[:=]\s{0,3}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=:\s,-]|\\[nr])*+")


def _group(match: re.Match[str]) -> tuple[int, int] | None:
    """The token behind the words that give it away."""
    return match.span(1) if _real(match.group(1)) else None


def _password(match: re.Match[str]) -> tuple[int, int] | None:
    """A password in a URL, but not the place that a manual holds open for one."""
    value = match.group(1)
    return None if value[0] in "$<{[%" or value.lower() in ("password", "pass") else match.span(1)


def _private_key(match: re.Match[str]) -> tuple[int, int]:
    """To the end mark; without one, as far as the key's characters go."""
    text, end = match.string, match.end()
    mark = text.find("-----END ", end, end + _PEM_LENGTH)
    if mark >= 0:
        close = text.find("-----", mark + 9, mark + 80)
        if close >= 0:
            return match.start(), close + 5
    body = _KEY_BODY.match(text, end, end + _PEM_LENGTH)
    return match.start(), end if body is None else body.end()


RULES: tuple[Rule, ...] = (
    Rule("SECRET", _PRIVATE_KEY, _private_key, hints=("-----BEGIN",), across=True),
    Rule("SECRET", _JWT, hints=("eyJ",)),
    *(_token(beginning, rest) for beginning, rest in TOKENS),
    Rule("SECRET", _BEARER, _group, hints=("earer ",), by_words=True),
    Rule("SECRET", _LOGIN, _password, hints=("://",), by_words=True),
    Rule("SECRET", _AWS_SECRET, _group, hints=("ecret", "ECRET"), by_words=True),
)
