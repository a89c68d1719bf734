"""The plugin's GPUShareNode is the one that the CRD is generated from."""

import json
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.api import node_object, policy, share_node
from gpushare_core.api.api_model import ApiModel
from gpushare_core.api.node_object import NodeObject

PAIRS = {
    "GPUShareNode": (node_object.GPUShareNode, share_node.GPUShareNode),
    "ObjectMeta": (node_object.ObjectMeta, policy.ObjectMeta),
    "NodeSpec": (node_object.NodeSpec, share_node.NodeSpec),
    "Devices": (node_object.Devices, policy.Devices),
    "SimulatedCards": (node_object.SimulatedCards, policy.SimulatedCards),
    "CardHealth": (node_object.CardHealth, policy.CardHealth),
    "Measurement": (node_object.Measurement, policy.Measurement),
    "NodeStatus": (node_object.NodeStatus, share_node.NodeStatus),
    "Condition": (node_object.Condition, policy.Condition),
    "CardStatus": (node_object.CardStatus, share_node.CardStatus),
    "PodShare": (node_object.PodShare, share_node.PodShare),
    "CardFault": (node_object.CardFault, share_node.CardFault),
    "UnitTotals": (node_object.UnitTotals, policy.UnitTotals),
    "MemoryTotals": (node_object.MemoryTotals, policy.MemoryTotals),
    "ResourceTotals": (node_object.ResourceTotals, share_node.ResourceTotals),
}
WORDS_ONLY = ("title", "description", "format")
"""Of a schema: what does not decide whether a value is accepted."""
PAIR = pytest.mark.parametrize(("own", "model"), PAIRS.values(), ids=PAIRS)


def test_every_object_is_compared() -> None:
    own = {name for name, each in vars(node_object).items() if _is_object(each)}
    assert own == PAIRS.keys()


def _is_object(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, NodeObject) and each is not NodeObject


@PAIR
def test_fields_have_the_same_names_types_bounds_and_defaults(
    own: type[NodeObject], model: type[ApiModel]
) -> None:
    by_msgspec = _fields(msgspec.json.schema(own))
    by_pydantic = _fields(model.model_json_schema())
    assert by_msgspec == by_pydantic


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.get("$defs", {})
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", [])
    properties = schema["properties"].items()
    return {name: (name in required, _plain(each, definitions)) for name, each in properties}


def _plain(schema: Any, definitions: dict[str, Any]) -> Any:
    """Returns a schema of one field as both libraries would write it."""
    if isinstance(schema, list):
        return sorted((_plain(each, definitions) for each in schema), key=repr)
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        enumerated = definitions[name].get("enum")
        return sorted(enumerated) if enumerated else name
    if "enum" in schema and "type" not in schema:
        return sorted(schema["enum"])
    return {
        key: _plain(each, definitions)
        for key, each in schema.items()
        if key not in (*WORDS_ONLY, "default", "enum") and not key.startswith("x-")
    }


@PAIR
def test_what_is_left_out_is_the_same(own: type[NodeObject], model: type[ApiModel]) -> None:
    least = {
        name: LEAST[name] for name, (required, _) in _fields(msgspec.json.schema(own)).items() if required
    }
    assert own.from_json(least).to_json() == model.model_validate(least).to_json()


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
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 65, 10**7, "", "x" * 400, "16Gi", "-1Gi", "Memory", [], {}, [1], True]
)


@PAIR
@given(data=st.data())
def test_what_is_refused_is_the_same(
    own: type[NodeObject], model: type[ApiModel], data: st.DataObject
) -> None:
    fields = _fields(msgspec.json.schema(own))
    body = {name: LEAST[name] for name, (required, _) in fields.items() if required}
    body[data.draw(st.sampled_from(sorted(fields)))] = data.draw(ODD)
    try:
        expected = model.model_validate_json(json.dumps(body), strict=True).to_json()
    except pydantic.ValidationError:
        with pytest.raises(msgspec.ValidationError):
            own.from_json(body)
    else:
        assert own.from_json(body).to_json() == expected
