"""The CRDs are what the models say, in the form that the API server takes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpushare_core.api import crd
from gpushare_core.api.enums import Mode
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.text.json_object import Json

ROOT = Path(__file__).resolve().parents[3]


EVERY = [pytest.param(resource, id=resource.plural) for resource in crd.CUSTOM_RESOURCES]


def schema_of(resource: crd.CustomResource) -> Json:
    (version,) = crd.definition(resource)["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def parts(schema: Json) -> Iterator[Json]:
    """Every schema within ``schema``."""
    yield schema
    for child in [
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]:
        if isinstance(child, dict):
            yield from parts(child)


@pytest.mark.parametrize("resource", EVERY)
def test_the_schema_is_structural(resource: crd.CustomResource) -> None:
    for part in parts(schema_of(resource)):
        assert "type" in part
        assert part.keys().isdisjoint({"$ref", "$defs", "anyOf", "title", "nullable"})
        assert not ("properties" in part and "additionalProperties" in part)


@pytest.mark.parametrize("resource", EVERY)
def test_it_is_cluster_scoped_and_found_under_the_category(resource: crd.CustomResource) -> None:
    spec = crd.definition(resource)["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"]["categories"] == ["gpushare"]
    assert spec["names"]["shortNames"] == [
        {"gpusharepolicies": "gsp", "gpusharenodes": "gsn"}[resource.plural]
    ]
    assert spec["versions"][0]["subresources"] == {"status": {}}


def test_optional_objects_are_filled_with_defaults() -> None:
    spec = schema_of(crd.POLICY)["properties"]["spec"]
    assert spec["required"] == ["nodes"]
    assert spec["properties"]["memoryUnit"]["default"] == "1Gi"
    assert spec["properties"]["placement"]["default"] == {}
    rule = spec["properties"]["nodes"]["items"]["properties"]
    assert rule["devices"]["default"] == {}
    assert rule["devices"]["properties"]["source"]["default"] == "NVML"
    assert "default" not in rule["selector"]
    assert "default" not in rule["names"]


@pytest.mark.parametrize("resource", EVERY)
def test_the_status_has_no_defaults_and_conditions_are_a_map(resource: crd.CustomResource) -> None:
    status = schema_of(resource)["properties"]["status"]
    assert not any("default" in part for part in parts(status))
    assert status["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_what_the_operator_writes_is_what_the_api_server_would_fill_in() -> None:
    """Otherwise each reconciliation would find a difference."""
    written = NodeSpec(policy="p", mode=Mode.MEMORY, memory_unit="1Gi").to_json()
    properties = schema_of(crd.NODE)["properties"]["spec"]["properties"]
    defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    assert defaults.keys() <= written.keys()
    assert {name: written[name] for name in defaults if defaults[name] != {}} == {
        name: value for name, value in defaults.items() if value != {}
    }


@pytest.mark.parametrize("resource", EVERY)
def test_every_column_shows_a_field_that_exists(resource: crd.CustomResource) -> None:
    schema = schema_of(resource)
    schema["properties"]["metadata"] = {"properties": {"creationTimestamp": {}}}
    for column in resource.columns:
        assert list(steps(schema, column.path)), column.path


def steps(schema: Json, path: str) -> Iterator[Json]:
    """Follow a JSON path of ours; raises KeyError where it leads nowhere."""
    for step in path.replace("[0]", ".[0]").replace("[?", ".[?").split("."):
        if not step or step.startswith("type=="):
            continue
        if step.startswith("["):
            schema = schema["items"]
        elif not step.startswith("type"):
            schema = schema["properties"][step.rstrip('")]')]
        yield schema


def test_the_files_in_the_repository_are_current() -> None:
    assert crd.drifted(ROOT / "crds") == []


def test_drift_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crd.main([str(tmp_path)]) == 0
    assert crd.main(["--check", str(tmp_path)]) == 0
    (tmp_path / crd.NODE.file_name).write_text("old")
    (tmp_path / crd.POLICY.file_name).unlink()
    assert crd.main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("make crds") == 2


def test_the_files_are_yaml_that_says_where_they_come_from(tmp_path: Path) -> None:
    crd.write(tmp_path)
    for resource in crd.CUSTOM_RESOURCES:
        text = (tmp_path / resource.file_name).read_text()
        assert text.startswith("# Generated")
        assert yaml.safe_load(text) == crd.definition(resource)
