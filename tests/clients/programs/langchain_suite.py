"""LangChain's standard tests of chat models, on its OpenAI and Anthropic packages."""

import base64
import os

import httpx
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

MODEL = os.environ["MODEL"]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite fetches its picture from the web, which is out of reach here."""
    monkeypatch.setattr(httpx, "get", lambda url, **_: httpx.Response(200, content=DOT))


class _OpenAI(ChatModelIntegrationTests):
    """What both APIs of OpenAI have in common."""

    responses = False

    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {
            "model": MODEL,
            "max_retries": 0,
            "use_responses_api": self.responses,
            "stream_usage": True,  # off by default at any other address than OpenAI's
        }

    @property
    def supports_image_inputs(self):
        return True

    @property
    def supports_json_mode(self):
        return True


class TestChat(_OpenAI):
    """Chat Completions."""


class TestResponses(_OpenAI):
    """Responses."""

    responses = True


class TestAnthropic(ChatModelIntegrationTests):
    """Messages."""

    @property
    def chat_model_class(self):
        return ChatAnthropic

    @property
    def chat_model_params(self):
        return {"model": MODEL, "max_retries": 0}

    @property
    def supports_image_inputs(self):
        return True

    @property
    def supports_image_tool_message(self):
        return True
