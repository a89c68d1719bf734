"""Base of what programs read from the API and write to it, and the texts that all objects have."""

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from gpushare_core.api import bounds
from gpushare_core.text.json_object import Json


class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Immutable; unknown fields are ignored, so that an older program reads a newer object.

    Structs and not pydantic models: those take 10 MiB of the plugin's 64.
    """

    @classmethod
    def from_json(cls, item: Json) -> Self:
        """Raises ``msgspec.ValidationError`` where ``item`` is none."""
        return msgspec.convert(item, cls)

    def to_json(self) -> Json:
        """Returns it as the API server wants it: camelCase, plain JSON types, no nulls."""
        written: Json = _without_nulls(msgspec.to_builtins(self))
        return written


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {
            key: _without_nulls(field) if type(field) in _NESTED else field
            for key, field in value.items()
            if field is not None
        }
    if type(value) is list:
        return [_without_nulls(item) if type(item) in _NESTED else item for item in value]
    return value


_NESTED = (dict, list)
"""What ``msgspec`` makes of objects and lists: most values are neither, and a call for each would show."""


class ObjectOwner(ApiObject, frozen=True, kw_only=True):
    """An object with which another one is deleted. Source: ``metav1.OwnerReference``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class ObjectMeta(ApiObject, frozen=True, kw_only=True):
    """The part of ``metav1.ObjectMeta`` that the programs read."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = {}
    owner_references: list[ObjectOwner] = []


def bounded(schema: Json) -> Meta:
    """Returns what the CRD says of a field, and what nobody checks who reads an object: see ``bounds``."""
    return Meta(extra_json_schema=schema)


Word = Annotated[str, bounded(bounds.text(bounds.WORD))]
Unit = Annotated[str, bounded(bounds.text(bounds.UNIT))]
Amount = Annotated[str, bounded(bounds.text(bounds.QUANTITY))]
Time = Annotated[str, bounded(bounds.text(bounds.TIME))]
Moment = Annotated[str, bounded({"format": "date-time"})]
CardUuid = Annotated[str, bounded(bounds.UUID)]
