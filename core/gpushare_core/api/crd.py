"""CustomResourceDefinitions, generated from the models: ``python -m gpushare_core.api.crd [--check] FOLDER``.

Source: structural schemas, apiextensions.k8s.io/v1 (references inlined, no nulls, no titles).
"""

import argparse
import ast
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import inspect

from gpushare_core.api.api_object import ApiObject
from gpushare_core.api.bounds import rule
from gpushare_core.api.names import (
    GROUP,
    LEDGER_IN_SYNC,
    NODE_KIND,
    NODE_PLURAL,
    POLICY_KIND,
    POLICY_PLURAL,
    REGISTERED,
    VERSION,
    VERSION_LABEL,
)
from gpushare_core.api.policy import MAX_POLICY_NAME, STRUCT, GPUSharePolicy
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.process.version import VERSION as PRODUCT_VERSION
from gpushare_core.text.json_object import Json

CATEGORY = "gpushare"
HEADER = "# Generated from the models in core/gpushare_core by `make crds`. Do not edit.\n"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``kubectl get``; with ``wide`` only of ``kubectl get -o wide``."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def to_json(self) -> Json:
        column = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """What a CRD has besides its schema."""

    model: type[GPUSharePolicy | GPUShareNode]
    kind: str
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    rules: tuple[dict[str, str], ...] = ()

    @property
    def file_name(self) -> str:
        return f"{GROUP}_{self.plural}.yaml"


def _condition(kind: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


AGE = Column("Age", ".metadata.creationTimestamp", "date")

POLICY = CustomResource(
    model=GPUSharePolicy,
    kind=POLICY_KIND,
    plural=POLICY_PLURAL,
    short_name="gsp",
    rules=(
        rule(
            f"size(self.metadata.name) <= {MAX_POLICY_NAME}",
            f"a policy's name has at most {MAX_POLICY_NAME} characters: it is part of other objects' names",
        ),
    ),
    columns=(
        Column("Ready", _condition("Ready")),
        Column("Nodes", ".status.nodes.summary"),
        Column("Cards", ".status.cards.summary"),
        Column("Unit", ".status.units.unit"),
        Column("Allocated", ".status.units.summary"),
        Column("Books", _condition("BooksAgree")),
        Column("Degraded", _condition("Degraded")),
        Column("Reason", _condition("Ready", "reason")),
        AGE,
        Column("Dialect", ".spec.dialect", wide=True),
        Column("Memory", ".status.memory.total", wide=True),
        Column("Used", ".status.memory.used", wide=True),
        Column("Message", _condition("Ready", "message"), wide=True),
    ),
)

NODE = CustomResource(
    model=GPUShareNode,
    kind=NODE_KIND,
    plural=NODE_PLURAL,
    short_name="gsn",
    columns=(
        Column("Ready", _condition(REGISTERED)),
        Column("Policy", ".spec.policy"),
        Column("Mode", ".spec.mode"),
        Column("Unit", ".status.memoryUnit"),
        Column("Units", ".status.units.total", "integer"),
        Column("Allocated", ".status.units.allocated", "integer"),
        Column("Books", _condition(LEDGER_IN_SYNC)),
        Column("Per Card", ".status.summary"),
        AGE,
        Column("Dialect", ".spec.dialect", wide=True),
        Column("Model", ".status.cards[0].model", wide=True),
        Column("Memory", ".status.memory.total", wide=True),
        Column("Used", ".status.memory.used", wide=True),
        Column("Isolation", ".status.isolation", wide=True),
        Column("Version", ".status.pluginVersion", wide=True),
    ),
)

CUSTOM_RESOURCES = (POLICY, NODE)


def definition(resource: CustomResource) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{GROUP}",
            "labels": {VERSION_LABEL: PRODUCT_VERSION},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [resource.short_name],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.to_json() for column in resource.columns],
                    "schema": {"openAPIV3Schema": root_schema(resource)},
                }
            ],
        },
    }


def root_schema(resource: CustomResource) -> Json:
    """Returns the structural schema of the whole object, without that of ``metadata``, which the API server
    has."""
    if issubclass(resource.model, ApiObject):
        schema = struct_schema(resource.model)
    else:
        raw = resource.model.model_json_schema(by_alias=True)
        schema = _inlined(raw, raw["$defs"])
    root = {
        "type": "object",
        "description": schema["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": schema["properties"]["spec"],
            "status": without_defaults(schema["properties"]["status"]),
        },
    }
    return {**root, "x-kubernetes-validations": list(resource.rules)} if resource.rules else root


def struct_schema(model: type[ApiObject]) -> Json:
    """Returns the schema of ``model``, with the docstrings of the class and its fields as descriptions.

    The API server goes on from the default ``{}`` of an object to the defaults of its fields.
    """
    return _schema(inspect.type_info(model))


def _schema(kind: inspect.Type) -> Json:
    match kind:
        case inspect.Metadata():
            return _merged(kind.type, _schema(kind.type), deepcopy(kind.extra_json_schema or {}))
        case inspect.UnionType():
            (kept,) = (option for option in kind.types if not isinstance(option, inspect.NoneType))
            return _schema(kept)
        case inspect.StructType():
            docs = _field_docstrings(kind.cls)
            properties = {field.encode_name: _field(field, docs.get(field.name)) for field in kind.fields}
            required = [field.encode_name for field in kind.fields if field.required]
            schema = {"properties": properties, **({"required": required} if required else {})}
            return {**_description(kind.cls), **schema, "type": "object"}
        case inspect.EnumType():
            return {**_description(kind.cls), "enum": _values(kind.cls), "type": "string"}
        case inspect.ListType():
            return _sorted(items=_schema(kind.item_type), maxItems=kind.max_length, type="array")
        case inspect.DictType():
            return {"additionalProperties": _schema(kind.value_type), "type": "object"}
        case inspect.StrType():
            return _sorted(maxLength=kind.max_length, type="string")
        case inspect.IntType():
            return _sorted(maximum=kind.le, minimum=kind.ge, type="integer")
        case inspect.BoolType():
            return {"type": "boolean"}
    raise TypeError(f"no schema for {kind}")


def _field(field: inspect.Field, docstring: str | None) -> Json:
    schema = _schema(field.type)
    if docstring:
        schema = _merged(field.type, schema, {"description": docstring})
    if isinstance(field.type, inspect.StructType) and not field.required:
        return {**schema, "default": {}}
    default = field.default
    if default is None or default is msgspec.NODEFAULT:
        return schema
    return _merged(field.type, schema, {"default": str(default) if isinstance(default, Enum) else default})


def _merged(kind: inspect.Type, schema: Json, said: Json) -> Json:
    """Returns the ``schema`` of a field's type with what the field itself says, which wins."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.StructType | inspect.EnumType | inspect.UnionType):
        return {**schema, **said}
    return _sorted(**{**schema, **said})


def _sorted(**schema: Any) -> Json:
    return {key: schema[key] for key in sorted(schema) if schema[key] is not None}


def _description(kind: type) -> Json:
    docstring = vars(kind).get("__doc__")
    return {"description": cleandoc(docstring).replace("``", "")} if docstring else {}


@cache
def _values(kind: type[Enum]) -> list[str]:
    """Returns the same list each time: YAML writes it once, and refers to it."""
    return [str(member) for member in kind]


def _field_docstrings(model: type) -> dict[str, str]:
    """Returns field -> the docstring below it, which is only in the source: a line for each paragraph."""
    found: dict[str, str] = {}
    for statement, following in pairwise(ast.walk(ast.parse(getsource(model)))):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(text))):
                paragraphs = cleandoc(text).split("\n\n")
                found[field] = "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    return found


def _inlined(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Returns pydantic's ``schema`` without references, titles and nulls."""
    merged = {key: value for key, value in _target(schema, definitions).items() if key != "title"}
    if "description" in merged:
        merged["description"] = merged["description"].replace("``", "")
    for key in ("items", "additionalProperties"):
        if isinstance(merged.get(key), dict):
            merged[key] = _inlined(merged[key], definitions)
    if "properties" in merged and STRUCT not in schema:
        merged["properties"] = _properties(merged, definitions)
    return merged


def _properties(schema: Json, definitions: Mapping[str, Json]) -> Json:
    required = schema.get("required", ())
    return {
        name: _inlined(field, definitions) | ({} if name in required else _empty_default(field, definitions))
        for name, field in schema["properties"].items()
    }


def _empty_default(field: Json, definitions: Mapping[str, Json]) -> Json:
    is_object = ("$ref" in field or STRUCT in field) and "properties" in _target(field, definitions)
    return {"default": {}} if is_object else {}


def _target(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Returns what a field's type says and what the field says of itself, which wins."""
    schema = _not_null(schema)
    if STRUCT in schema:
        target = struct_schema(schema[STRUCT])
    elif "$ref" in schema:
        target = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    else:
        return schema
    return {**target, **{key: value for key, value in schema.items() if key not in ("$ref", STRUCT)}}


def _not_null(schema: Json) -> Json:
    """Pydantic says ``anyOf: [X, null], default: null``; to the API server it is just not required."""
    if "anyOf" not in schema:
        return schema
    (kept,) = (option for option in schema["anyOf"] if option != {"type": "null"})
    return {**kept, **{key: value for key, value in schema.items() if key not in ("anyOf", "default")}}


def without_defaults(schema: Json) -> Json:
    """Programs write a status as a whole: the API server must not fill in parts of it."""
    changed = {key: value for key, value in schema.items() if key != "default"}
    if "items" in changed:
        changed["items"] = without_defaults(changed["items"])
    if "properties" in changed:
        changed["properties"] = {
            name: without_defaults(field) for name, field in changed["properties"].items()
        }
    return changed


def rendered(resource: CustomResource) -> str:
    return HEADER + yaml.safe_dump(definition(resource), sort_keys=False, width=110)


def drifted(folder: Path) -> list[Path]:
    """Returns the files in ``folder`` that differ from the models."""
    desired = {folder / resource.file_name: rendered(resource) for resource in CUSTOM_RESOURCES}
    return [path for path, text in desired.items() if not path.is_file() or path.read_text() != text]


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for resource in CUSTOM_RESOURCES:
        (folder / resource.file_name).write_text(rendered(resource))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the CustomResourceDefinitions into a folder.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.folder)
        return 0
    late = drifted(options.folder)
    for path in late:
        print(f"{path} is not what the models say: run `make crds`", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
