"""Embeddings: every input form, both vector forms, any order (case N23)."""

import base64
import json
import struct

import pytest
from openai.types import CreateEmbeddingResponse, EmbeddingCreateParams

from adapters.canonical.embedding import EmbeddingRequest, Embeddings
from adapters.canonical.events import Usage
from adapters.canonical.faults import Fault
from adapters.wire import embeddings as wire
from gateway.northbound import embeddings

PACKED = base64.b64encode(struct.pack("<2f", 0.5, -1.0)).decode()


def parse(**fields):
    return embeddings.parse(json.dumps({"model": "m", "input": "a", **fields}).encode())[0]


def test_every_field_of_the_sdk_has_a_row():
    assert set(embeddings.FIELDS) == set(EmbeddingCreateParams.__annotations__)
    assert set(embeddings.Body.__annotations__) == set(embeddings.FIELDS)


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
    ],
)
def test_every_form_of_input(given, inputs):
    request = parse(input=given)
    assert request.inputs == inputs
    sent = json.loads(wire.encode(request, "real").call.body)
    assert sent == {"model": "real", "input": json.loads(json.dumps(inputs))}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", 5]}, "input[1]"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [1, -2]}, "input[1]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": None}, "input"),
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": -1, "encoding_format": "x"}, "dimensions"),
        ({"model": 5}, "model"),
    ],
)
def test_what_is_wrong_is_named(fields, param):
    with pytest.raises(Fault) as caught:
        parse(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_what_is_left_out_is_not_sent_on():
    full = parse(dimensions=8, encoding_format="base64", user="u", x=1)
    assert json.loads(wire.encode(full, "real").call.body) == {
        "model": "real",
        "input": ["a"],
        "dimensions": 8,
        "encoding_format": "base64",
        "user": "u",
        "x": 1,
    }


def test_hosts_are_not_taken_from_the_body():
    request, dropped = embeddings.parse(b'{"model":"m","input":"a","api_base":"http://evil.test"}')
    assert dropped == ("api_base",)
    assert request.extras == {}


@pytest.mark.parametrize("theirs", ["float", "base64"])
@pytest.mark.parametrize("ours", [None, "float", "base64"])
def test_the_caller_gets_the_form_asked_for_whatever_came(theirs, ours):
    vector = [0.5, -1.0] if theirs == "float" else PACKED
    answer = Embeddings("real", (vector,), Usage(input=3, output=0))
    body = json.loads(embeddings.write(answer, EmbeddingRequest("m", ("a",), form=ours)))
    CreateEmbeddingResponse.model_construct(**body)
    assert body["data"] == [
        {
            "object": "embedding",
            "index": 0,
            "embedding": PACKED if ours == "base64" else [0.5, -1.0],
        }
    ]
    assert body["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert body["model"] == "real"


def test_the_alias_and_unknown_counts():
    answer = Embeddings("real", ([0.5],))
    body = json.loads(embeddings.write(answer, EmbeddingRequest("m", ("a",)), "alias"))
    assert (body["model"], body["usage"]) == ("m", None)


def answer_of(*items, **more) -> bytes:
    return json.dumps({"data": list(items), "model": "real", **more}).encode()


def test_vectors_are_put_in_the_order_of_their_inputs():
    data = answer_of(
        {"index": 1, "embedding": [2.0]},
        {"index": 0, "embedding": [1.0]},
        usage={"prompt_tokens": 4, "total_tokens": 4},
    )
    assert wire.decode(data, 2) == Embeddings("real", ([1.0], [2.0]), Usage(input=4, output=0))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"{}",
        answer_of({"index": 0, "embedding": [1.0]}),
        answer_of({"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}),
        answer_of({"index": 0, "embedding": [1.0]}, {"index": 5, "embedding": [1.0]}),
        answer_of({"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": 7}),
        answer_of(3, 4),
    ],
)
def test_anything_but_one_vector_an_input_is_a_protocol_error(data):
    with pytest.raises(Fault) as caught:
        wire.decode(data, 2)
    assert caught.value.kind == "protocol_error"


def test_an_error_inside_an_answer_is_one():
    with pytest.raises(Fault) as caught:
        wire.decode(b'{"error":{"code":429,"message":"slow"}}', 1)
    assert caught.value.kind == "upstream_rate_limited"


@pytest.mark.parametrize("vector", ["not base64!", "AAA=", ["x"], [1e300]])
def test_a_vector_that_is_none_is_a_protocol_error(vector):
    other = "float" if isinstance(vector, str) else "base64"
    with pytest.raises(Fault) as caught:
        wire.in_form(vector, other)
    assert caught.value.kind == "protocol_error"
