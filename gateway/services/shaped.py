"""What was posted, in the shape that is asked for, or its mistakes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gateway.northbound.body import mistakes

Shape = TypeVar("Shape", bound=BaseModel)


def shaped(shape: type[Shape]) -> Callable[[Mapping[str, Any]], Shape]:
    """What makes a ``shape`` of a JSON object; it raises ``bad_request`` where it can't."""

    def read(given: Mapping[str, Any]) -> Shape:
        try:
            return shape.model_validate(given)
        except ValidationError as error:
            raise mistakes(error, given) from None

    return read
