"""Base of the API's models: camelCase outside, snake_case inside, tolerant of newer fields."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.placement.quantity import parse_quantity


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
        """As the API server wants it: camelCase, plain JSON types, no nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rule(expression: str, message: str) -> dict[str, str]:
    """One CEL rule of a CRD (``x-kubernetes-validations``)."""
    return {"rule": expression, "message": message}


def rules(*checks: dict[str, str], **extra: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": list(checks), **extra}


def _is_quantity(text: str) -> str:
    parse_quantity(text)
    return text


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


class Condition(ApiModel):
    """What holds, since when, and why. Source: ``metav1.Condition``."""

    type: str
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})
    reason: str
    message: str
    last_transition_time: str = Field(json_schema_extra={"format": "date-time"})
    observed_generation: int = 0


def condition(
    kind: str, *, status: bool | None, reason: str, message: str, generation: int, now: datetime
) -> Condition:
    """A condition that became so at ``now``; ``status`` None stands for Unknown."""
    return Condition(
        type=kind,
        status="Unknown" if status is None else str(status),
        reason=reason,
        message=message,
        last_transition_time=rfc3339(now),
        observed_generation=generation,
    )


def merge_conditions(old: list[Condition], new: list[Condition]) -> list[Condition]:
    """``new``, but where the status did not change the time of the last transition stays."""
    before = {each.type: each for each in old}
    return [_keep_transition(before.get(each.type), each) for each in new]


def _keep_transition(old: Condition | None, new: Condition) -> Condition:
    if old is None or old.status != new.status:
        return new
    return new.model_copy(update={"last_transition_time": old.last_transition_time})
