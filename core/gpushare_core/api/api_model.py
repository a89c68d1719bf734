"""Base of the API's models: camelCase outside, snake_case inside, tolerant of newer fields."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gpushare_core.api import bounds
from gpushare_core.placement.quantity import parse_memory


class ApiModel(BaseModel):
    """Immutable; unknown fields are ignored, so that an older program reads a newer object."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Returns it as the API server wants it: camelCase, plain JSON types, no nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rule(expression: str, message: str) -> dict[str, str]:
    """Returns one CEL rule of a CRD (``x-kubernetes-validations``)."""
    return {"rule": expression, "message": message}


def rules(*checks: dict[str, str], **extra: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": list(checks), **extra}


def _is_quantity(text: str) -> str:
    parse_memory(text)
    return text


def bounded(schema: dict[str, Any]) -> Any:
    """Returns what makes the API server keep to ``schema``, and the model not: see ``bounds``."""
    return Field(json_schema_extra=schema)


Word = Annotated[str, bounded(bounds.text(bounds.WORD))]
Unit = Annotated[str, bounded(bounds.text(bounds.UNIT))]
Amount = Annotated[str, bounded(bounds.text(bounds.QUANTITY))]
Time = Annotated[str, bounded(bounds.text(bounds.TIME))]
CardUuid = Annotated[str, bounded(bounds.UUID)]
"""Of a status."""

Quantity = Annotated[
    str,
    AfterValidator(_is_quantity),
    Field(
        max_length=20,
        json_schema_extra=rules(
            rule(
                r"self.matches('^[0-9]+([.][0-9]+)?([kMGTP]|[KMGTP]i)?$')",
                "must be a quantity of memory such as 16Gi, 512Mi or 100M",
            )
        ),
    ),
]
