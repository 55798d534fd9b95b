"""LangChain's standard tests of chat models, on its OpenAI and Anthropic packages."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

MODEL = os.environ["MODEL"]


class _OpenAI(ChatModelIntegrationTests):
    """What both APIs of OpenAI have in common."""

    responses = False

    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {"model": MODEL, "max_retries": 0, "use_responses_api": self.responses}

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
