"""What was posted, in the shape that is asked for, or its mistakes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adapters.canonical.faults import Fault

Shape = TypeVar("Shape", bound=BaseModel)

MOST = 5
"""Mistakes that are told at once."""


def shaped(shape: type[Shape]) -> Callable[[Mapping[str, Any]], Shape]:
    """What makes a ``shape`` of a JSON object; it raises ``bad_request`` where it can't."""

    def read(given: Mapping[str, Any]) -> Shape:
        try:
            return shape.model_validate(given)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[:MOST]
            places = [".".join(map(str, mistake["loc"])) for mistake in found]
            told = (f"{at}: {mistake['msg']}" for at, mistake in zip(places, found, strict=True))
            raise Fault("bad_request", "; ".join(told), param=places[0]) from None

    return read
