"""What a GPUShareNode reads back, fills in and refuses is what its CRD says."""

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.api import share_node
from gpushare_core.api.api_object import ApiObject, ObjectMeta
from gpushare_core.api.conditions import Condition
from gpushare_core.api.crd import struct_schema
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.text.json_object import Json

OBJECTS = {
    "GPUShareNode": share_node.GPUShareNode,
    "ObjectMeta": ObjectMeta,
    "NodeSpec": share_node.NodeSpec,
    "Devices": share_node.Devices,
    "SimulatedCards": share_node.SimulatedCards,
    "CardHealth": share_node.CardHealth,
    "Measurement": share_node.Measurement,
    "Isolation": share_node.Isolation,
    "NodeStatus": share_node.NodeStatus,
    "Condition": Condition,
    "CardStatus": share_node.CardStatus,
    "PodShare": share_node.PodShare,
    "CardFault": share_node.CardFault,
    "UnitTotals": share_node.UnitTotals,
    "MemoryTotals": share_node.MemoryTotals,
    "ResourceTotals": share_node.ResourceTotals,
}
schema_of = cache(struct_schema)
EVERY = pytest.mark.parametrize("model", OBJECTS.values(), ids=OBJECTS)


def test_every_object_is_looked_at() -> None:
    own = {name for name, kind in vars(share_node).items() if _is_object(kind)}
    assert own | {"Condition"} == OBJECTS.keys()


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, ApiObject) and kind is not ApiObject


SPEC = {"policy": "default", "mode": "Memory", "memoryUnit": "1Gi"}
LEAST: dict[str, Any] = {
    "metadata": {"name": "gpu-1"},
    "spec": SPEC,
    **SPEC,
    "count": 2,
    "memory": "16Gi",
    "units": 16,
    "index": 0,
    "uuid": "GPU-0",
    "type": "Ready",
    "status": "True",
    "message": "",
    "lastTransitionTime": "2026-11-22T10:00:00Z",
    "reason": "Xid79",
    "since": "2026-11-22T10:00:00Z",
    "lastSeen": "2026-11-22T10:00:00Z",
    "namespace": "default",
    "name": "a",
    "uid": "uid-a",
    "container": "main",
    "resource": "memory",
    "total": 1,
}


def least(model: type[ApiObject]) -> Json:
    return {name: LEAST[name] for name in schema_of(model).get("required", ())}


@EVERY
def test_the_schema_has_every_field_and_requires_those_without_a_default(model: type[ApiObject]) -> None:
    schema = schema_of(model)
    assert [*schema["properties"]] == [*model.__struct_encode_fields__]
    assert model.from_json(least(model)).to_json().keys() >= least(model).keys()
    for name in least(model):
        with pytest.raises(msgspec.ValidationError):
            model.from_json({key: value for key, value in least(model).items() if key != name})


@EVERY
def test_what_is_left_out_is_what_the_api_server_fills_in(model: type[ApiObject]) -> None:
    written, properties = model.from_json(least(model)).to_json(), schema_of(model)["properties"]
    for name, schema in properties.items():
        if schema.get("default", {}) != {}:
            assert written[name] == schema["default"]
        if schema.get("default") == {}:
            assert written[name] == struct_defaults(schema)


def struct_defaults(schema: Json) -> Json:
    found: Json = {}
    for name, field in schema["properties"].items():
        if "default" in field:
            found[name] = struct_defaults(field) if field["default"] == {} else field["default"]
        elif field["type"] == "array":
            found[name] = []
        elif "properties" in field:
            found[name] = struct_defaults(field)
    return found


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 65, 10**7, "", "x" * 400, "16Gi", "-1Gi", "Memory", [], {}, [1], True]
)


@EVERY
@given(data=st.data())
def test_what_is_refused_is_what_the_schema_refuses(model: type[ApiObject], data: st.DataObject) -> None:
    properties = schema_of(model)["properties"]
    name = data.draw(st.sampled_from(sorted(properties)))
    value = data.draw(ODD)
    body = {**least(model), name: value}
    optional = value is None and _may_be_null(model, name)
    if optional or _accepts(properties[name], value):
        assert model.from_json(body).to_json().get(name) == value or isinstance(value, dict)
    else:
        with pytest.raises(msgspec.ValidationError):
            model.from_json(body)


def _may_be_null(model: type[ApiObject], name: str) -> bool:
    fields = {field.encode_name: field for field in msgspec.structs.fields(model)}
    return fields[name].default is None


LENIENT = {
    share_node.LenientShareNode: share_node.GPUShareNode,
    share_node.LenientSpec: share_node.NodeSpec,
    share_node.LenientDivision: share_node.NodeStatus,
    share_node.LenientStatus: share_node.NodeStatus,
    share_node.LenientCard: share_node.CardStatus,
    share_node.LenientShare: share_node.PodShare,
    share_node.LenientCondition: Condition,
}


@pytest.mark.parametrize(("lenient", "model"), LENIENT.items(), ids=lambda kind: kind.__name__)
def test_a_lenient_reader_reads_fields_of_the_model(
    lenient: type[msgspec.Struct], model: type[ApiObject]
) -> None:
    names = lenient.__struct_encode_fields__
    assert {*names} <= {*model.__struct_encode_fields__}
    written = model.from_json(least(model)).to_json()
    read = msgspec.to_builtins(msgspec.convert(written, lenient))
    for name in names:
        if name in written and not isinstance(written[name], dict | list):
            assert read[name] == written[name]


TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def _accepts(schema: Json, value: Any) -> bool:
    """Whether a reader takes ``value``: all that the schema says but the bounds, which writers keep to."""
    if type(value) is not TYPES[schema["type"]]:
        return False
    if isinstance(value, str):
        return _accepts_text(schema, value)
    if isinstance(value, int):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        return all(_accepts(schema["items"], item) for item in value)
    return not schema.get("required")


def _accepts_text(schema: Json, value: str) -> bool:
    if "pattern" in schema or schema.get("format") or "True" in schema.get("enum", ()):
        return True
    if any("quantity" in rule["message"] for rule in schema.get("x-kubernetes-validations", ())):
        return _is_quantity(value) and len(value) <= schema["maxLength"]
    return value in schema.get("enum", [value]) and len(value) <= schema.get("maxLength", len(value))


def _is_quantity(text: str) -> bool:
    try:
        return parse_memory(text) >= 0
    except ValueError:
        return False
