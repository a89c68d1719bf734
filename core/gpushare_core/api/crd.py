"""CustomResourceDefinitions generated from the models: ``python -m gpushare_core.api.crd [--check] FOLDER``.

Source: structural schemas, apiextensions.k8s.io/v1 (references inlined, no nulls, no titles).
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from gpushare_core.api.api_model import ApiModel, rule
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
from gpushare_core.api.policy import MAX_POLICY_NAME, GPUSharePolicy
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
    """What a CRD says besides its schema."""

    model: type[ApiModel]
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
        Column("Version", ".status.pluginVersion", wide=True),
    ),
)

CUSTOM_RESOURCES = (POLICY, NODE)


def definition(resource: CustomResource) -> Json:
    """Returns the CustomResourceDefinition as plain JSON."""
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
            "versions": [_version(resource)],
        },
    }


def _version(resource: CustomResource) -> Json:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.to_json() for column in resource.columns],
        "schema": {"openAPIV3Schema": root_schema(resource)},
    }


def root_schema(resource: CustomResource) -> Json:
    """Returns the structural schema of the whole object; the API server itself knows ``metadata``."""
    raw = resource.model.model_json_schema(by_alias=True)
    schema = inlined(raw, raw.get("$defs", {}))
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


def inlined(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Returns ``schema`` without references, titles and nulls; optional objects get the default ``{}``.

    The API server goes on from ``{}`` to the defaults of the object's own fields.
    """
    merged = {key: value for key, value in _target(schema, definitions).items() if key != "title"}
    if "description" in merged:
        merged["description"] = merged["description"].replace("``", "")
    for key in ("items", "additionalProperties"):
        if isinstance(merged.get(key), dict):
            merged[key] = inlined(merged[key], definitions)
    if "properties" in merged:
        merged["properties"] = _properties(merged, definitions)
    return merged


def _properties(schema: Json, definitions: Mapping[str, Json]) -> Json:
    required = schema.get("required", ())
    return {
        name: {**inlined(each, definitions), **_empty_default(each, definitions, required=name in required)}
        for name, each in schema["properties"].items()
    }


def _empty_default(field: Json, definitions: Mapping[str, Json], *, required: bool) -> Json:
    is_object = "$ref" in field and _target(field, definitions).get("type") == "object"
    return {"default": {}} if is_object and not required else {}


def _target(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """What a field says of itself wins over what its type says."""
    schema = _not_null(schema)
    if "$ref" not in schema:
        return schema
    target = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _not_null(schema: Json) -> Json:
    """Pydantic says ``anyOf: [X, null], default: null``; to the API server it is just not required."""
    if "anyOf" not in schema:
        return schema
    (kept,) = (option for option in schema["anyOf"] if option != {"type": "null"})
    return {**kept, **{key: value for key, value in schema.items() if key not in ("anyOf", "default")}}


def without_defaults(schema: Json) -> Json:
    """The programs write a status in full; the API server must not invent parts of it."""
    changed = {key: value for key, value in schema.items() if key != "default"}
    if "items" in changed:
        changed["items"] = without_defaults(changed["items"])
    if "properties" in changed:
        changed["properties"] = {name: without_defaults(each) for name, each in changed["properties"].items()}
    return changed


def rendered(resource: CustomResource) -> str:
    """Returns the file's text."""
    return HEADER + yaml.safe_dump(definition(resource), sort_keys=False, width=110)


def drifted(folder: Path) -> list[Path]:
    """Returns the files in ``folder`` that are not what the models say."""
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
