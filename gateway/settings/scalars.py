"""The scalar types of the configuration file, each strict in one way that TOML needs.

TOML has integers, floats, dates and strings. Floats are read as ``Decimal`` so that money never
passes through binary floating point; the types here say what each field takes of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from gateway.settings.bounds import MOST_COUNT, MOST_MEGABYTES, fit_usd


class Table(BaseModel):
    """A table of the file: no unknown key, no silent conversion, no later change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number, without quotes")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("must be a finite number")
    return number


def _float(value: Any) -> float:
    return float(_decimal(value))


def _days(value: Any) -> float:
    if isinstance(value, Decimal) and value == Decimal("Infinity"):
        return float("inf")
    return _float(value)


def _unix(value: Any) -> float:
    """A TOML date or date-time as Unix seconds; without an offset it is UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError("must be a date or a date and time, without quotes: 2027-01-31")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


Number = Annotated[float, BeforeValidator(_float)]
Positive = Annotated[float, BeforeValidator(_float), Field(gt=0)]
NotNegative = Annotated[float, BeforeValidator(_float), Field(ge=0)]
Seconds = Positive
Megabytes = Annotated[float, BeforeValidator(_float), Field(gt=0, le=MOST_MEGABYTES)]
Days = Annotated[float, BeforeValidator(_days), Field(ge=0)]
Share = Annotated[float, BeforeValidator(_float), Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0, le=MOST_COUNT)]
AtLeastOne = Annotated[int, Field(ge=1)]
Usd = Annotated[Decimal, BeforeValidator(_decimal), AfterValidator(fit_usd)]
"""US dollars; ``0`` is a limit like any other, and lets nothing through."""
Instant = Annotated[float, BeforeValidator(_unix)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f\x7f]+$")]
"""A name that stands in URLs, headers and metrics: no blanks, no control characters. ``/``,
``.`` and ``:`` are fine, since model names have them."""
Host = Annotated[str, Field(min_length=1)]
"""An empty one would mean every interface of the machine, which ``0.0.0.0`` says in the open."""
Reference = Annotated[str, Field(min_length=1)]
"""Text in which ``${VARIABLE}`` stands for an environment variable."""
SecretReference = Annotated[str, Field(min_length=1)]
"""``${VARIABLE}`` or ``file:PATH``: where a secret is to be found, never the secret itself."""
